"""Lowering: operators to loops, loops to schedules, schedules to machine code."""
