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
	for all := []*cobra.Command{root}; len(all) > 0; all = all[1:] {
		all[0].Example = examplePattern.ReplaceAllString(all[0].Example, "${1}kubectl weir ")
		all = append(all, all[0].Commands()...)
	}
}
