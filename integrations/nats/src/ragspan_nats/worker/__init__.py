"""A worker of the fleet: takes records from the stream, scores them, and acknowledges them once their scores are exported."""
