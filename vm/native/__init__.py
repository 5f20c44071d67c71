"""The native engine: functions as programs for one routine of machine code, the driver."""
