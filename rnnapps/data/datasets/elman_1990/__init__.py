"""Elman's simple sentences, in which word order alone tells the classes of words."""
