"""The pytest plugin: options, fixtures and reports for tests of users and of this project; it does not import `suites`."""
