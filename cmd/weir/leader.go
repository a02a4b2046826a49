// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli"
)

// leaderFlags select the running Weir that a command connects to.
type leaderFlags struct {
	cli.Flags

	url, namespace string
}

func newLeaderFlags() *leaderFlags {
	f := &leaderFlags{Flags: cli.NewFlags()}
	f.Namespace = nil
	return f
}

// add adds the flags that do not connect to the API server, in front of a command's own.
func (l *leaderFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&l.url, "operator-url", "", "where a controller's --operator-bind-address is reached, e.g. http://127.0.0.1:8082; empty: the leader, through the API server")
	f.StringVar(&l.namespace, "weir-namespace", "weir-system", "where Weir runs")
	completeFlag(cmd, "weir-namespace", completeNamespaces(l.Flags))
}

// connect returns the connection to the leader, or to --operator-url.
func (l *leaderFlags) connect(cmd *cobra.Command) (app.Connection, error) {
	if f := cmd.Flags(); l.url != "" && (f.Changed("kubeconfig") || f.Changed("weir-namespace")) {
		return app.Connection{}, &app.UsageError{Err: errors.New("--operator-url: does not use the API server: remove --kubeconfig and --weir-namespace")}
	}
	return l.NewConnection(l.url, l.namespace)
}
