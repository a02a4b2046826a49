// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"weir.dev/weir/internal/provisioning/charts"
)

// newRenderChart returns the command of the child process that renders a chart.
func newRenderChart() *cobra.Command {
	return &cobra.Command{
		Use:    charts.Command,
		Short:  "Render a chart for the provisioner",
		Hidden: true,
		Args:   rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return charts.RunChild(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
