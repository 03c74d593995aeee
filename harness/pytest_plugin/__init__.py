"""The pytest plugin: options, fixtures and reports for tests of users and of this project, without a use of suites."""
