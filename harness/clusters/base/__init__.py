"""What every cluster of servers does the same, whatever the servers run as."""
