"""The timed window: requests out at their intended times, bytes and arrival stamps back."""
