// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// checkSubcommand returns an error for help on a subcommand that does not exist. Cobra would show the help of the
// parent command.
func checkSubcommand(root *cobra.Command, args []string) error {
	root.InitDefaultHelpCmd()
	if len(args) > 0 && args[0] == "help" {
		args = args[1:]
	}
	if len(args) > 0 && (args[0] == "completion" || strings.HasPrefix(args[0], "__")) { // cobra adds these when it runs
		return nil
	}
	cmd, rest, err := root.Find(args)
	if err != nil || !cmd.HasSubCommands() {
		return nil //nolint:nilerr // running it says what is wrong
	}
	for _, arg := range rest {
		if !strings.HasPrefix(arg, "-") {
			return cmd.ValidateArgs([]string{arg})
		}
	}
	return nil
}
