"""What our tests, and our users', share: counting, delaying and failing stores, servers, models of the store."""
