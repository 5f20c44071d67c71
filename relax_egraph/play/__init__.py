"""The playground: a page that shows what rules do to a program, while both are typed."""
