"""The interfaces of older packages, on today's Gymnasium and NumPy."""
