"""A page on this machine that shows what exported models answer; it needs Gradio."""
