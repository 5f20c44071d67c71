"""What is known of a rule file while it is written: names, mistakes, answers to questions."""
