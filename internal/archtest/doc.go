// Package archtest holds the import graph of the module as a table, in a test.
package archtest
