// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"weir.dev/weir/test/referencepage"
)

// The reference has the help of every command.
func TestReferenceOfCommands(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Commands\n\nThe help of each command, rendered by `go test ./cmd/weir -run Reference -rewrite`. [Command line](cli.md) explains them.\n")
	for _, c := range allCommands(newRoot()) {
		if c.Hidden || !c.Runnable() {
			continue
		}
		var help bytes.Buffer
		c.SetOut(&help)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n## " + c.CommandPath() + "\n\n```\n" + strings.TrimSpace(help.String()) + "\n```\n")
	}
	referencepage.ExpectFile(t, "../../docs/reference/commands.md", b.String())
}
