"""A saturation run once more, to see what each rule matched and made."""
