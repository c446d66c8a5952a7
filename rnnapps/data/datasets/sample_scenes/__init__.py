"""Generated pictures of small scenes with five captions each: the captioning task's sample."""
