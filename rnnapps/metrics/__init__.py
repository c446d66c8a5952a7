"""What models are measured by, from plain arrays and lists to numbers."""
