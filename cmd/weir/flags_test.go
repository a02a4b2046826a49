// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func allCommands(of *cobra.Command) []*cobra.Command {
	commands := []*cobra.Command{of}
	for _, sub := range of.Commands() {
		commands = append(commands, allCommands(sub)...)
	}
	return commands
}

// Each command with -o accepts text and json, and each that reads a cluster has kubectl's connection flags. The controller
// is no client of kubectl's kind, and weir address reads Azure alone.
func TestFlagsOfAllCommands(t *testing.T) {
	without := map[string]bool{"weir": true, "weir controller": true, "weir backoff-table": true, "weir migrate": true, "weir address": true, "weir address list": true, "weir address release": true, "weir address claim": true}
	outputs, connections := 0, 0
	for _, cmd := range allCommands(newRoot()) {
		if f := cmd.Flag("output"); f != nil {
			outputs++
			for value, ok := range map[string]bool{"text": true, "json": true, "xml": false, "": false} {
				if err := f.Value.Set(value); (err == nil) != ok {
					t.Errorf("%s -o %q: %v", cmd.CommandPath(), value, err)
				}
			}
		}
		if without[cmd.CommandPath()] {
			continue
		}
		connections++
		for _, name := range []string{"kubeconfig", "context", "cluster", "user", "as", "as-group", "as-uid", "token", "server", "request-timeout", "certificate-authority", "tls-server-name", "insecure-skip-tls-verify", "proxy-url"} {
			if cmd.Flag(name) == nil {
				t.Errorf("%s has no --%s", cmd.CommandPath(), name)
			}
		}
	}
	if outputs < 18 || connections < 20 {
		t.Errorf("%d commands with -o, %d with connection flags", outputs, connections)
	}
}

// Help describes -n, --context and --kubeconfig, and lists the other connection flags by name.
func TestHelpOfConnectionFlags(t *testing.T) {
	for _, command := range [][]string{{"pause"}, {"provision", "list"}} {
		var out bytes.Buffer
		root := newRoot()
		root.SetArgs(append(command, "--help"))
		root.SetOut(&out)
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		help := out.String()
		for _, part := range []string{"      --context string      context of the kubeconfig", "\n  --as, --as-group,", "--request-timeout, --server,", `described by "kubectl options"`} {
			if strings.Count(help, part) != 1 {
				t.Errorf("%v: not once %q in\n%s", command, part, help)
			}
		}
		if strings.Contains(help, "Username to impersonate") {
			t.Errorf("%v describes --as:\n%s", command, help)
		}
	}
}
