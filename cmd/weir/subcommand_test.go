// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// An unknown command is a usage error, even with --help.
func TestWrongCommands(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
	}{
		{[]string{"statsu", "--help"}, 2},
		{[]string{"--help", "statsu"}, 2},
		{[]string{"help", "statsu"}, 2},
		{[]string{"statsu"}, 2},
		{[]string{"migrate", "statsu", "-h"}, 2},
		{[]string{"provision", "nosuch", "--help"}, 2},
		{[]string{"explain", "nosuch", "--help"}, 0}, // an argument; help shows it
		{[]string{"help", "status"}, 0},
		{[]string{"help"}, 0},
		{[]string{"completion", "bash"}, 0},
		{[]string{"__complete", "sta"}, 0},
		{[]string{"status", "--help"}, 0},
		{[]string{"--version"}, 0},
		{[]string{"--nosuch"}, 2},
		{nil, 0},
	} {
		if code := run(tt.args); code != tt.code {
			t.Errorf("weir %q: exit code %d, want %d", tt.args, code, tt.code)
		}
	}
}
