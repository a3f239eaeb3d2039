// Package archtest tests the import graph of the module against a table, and
// docs/PROMISES.md against the names of the tests.
package archtest
