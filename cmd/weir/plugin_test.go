// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

// Help and examples use the name of the plugin.
func TestHelpOfAPlugin(t *testing.T) {
	for _, tt := range []struct{ program, usage, example string }{
		{"/usr/local/bin/weir", "\n  weir status [flags]", "\n  weir status -A\n"},
		{"/home/a/.krew/bin/kubectl-weir", "\n  kubectl weir status [flags]", "\n  kubectl weir status -A\n"},
		{"kubectl-weir.exe", "\n  kubectl weir status [flags]", "\n  kubectl weir status -A\n"},
	} {
		var out bytes.Buffer
		root := newRoot()
		usePluginName(root, tt.program)
		root.SetArgs([]string{"status", "--help"})
		root.SetOut(&out)
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		if help := out.String(); !strings.Contains(help, tt.usage) || !strings.Contains(help, tt.example) {
			t.Errorf("%s:\n%s", tt.program, help)
		}
	}
}
