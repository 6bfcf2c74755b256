"""What is taught: every position scheme, measure and model of the course, in the papers' notation."""
