// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

var examplePattern = regexp.MustCompile(`(?m)^( +)weir `)

// usePluginName shows "kubectl weir" in help if the program runs as kubectl-weir.
func usePluginName(root *cobra.Command, program string) {
	if name := strings.TrimSuffix(filepath.Base(program), ".exe"); name != "kubectl-weir" {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl weir"}
	for commands := []*cobra.Command{root}; len(commands) > 0; commands = commands[1:] {
		commands[0].Example = examplePattern.ReplaceAllString(commands[0].Example, "${1}kubectl weir ")
		commands = append(commands, commands[0].Commands()...)
	}
}
