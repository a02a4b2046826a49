// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"weir.dev/weir/internal/kube/charts"
)

// newRenderChart is how the controller has a chart rendered, by a process that can do nothing else.
func newRenderChart() *cobra.Command {
	return &cobra.Command{
		Use:    charts.Command,
		Short:  "Render a chart for the controller",
		Hidden: true,
		Args:   flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return charts.Child(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
