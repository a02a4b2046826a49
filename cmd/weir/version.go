// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli"
	"weir.dev/weir/internal/cli/status"
)

// versions are the output of weir version.
type versions struct {
	Client string `json:"client"`
	// Controller is nil if none was looked for.
	Controller *controllerVersion `json:"controller,omitempty"`
}

type controllerVersion struct {
	// Version is empty if it is not known; Why is the reason.
	Version string `json:"version,omitempty"`
	Leader  string `json:"leader,omitempty"`
	// Namespace is that of the Lease.
	Namespace string `json:"namespace,omitempty"`
	Why       string `json:"why,omitempty"`
}

func newVersion() *cobra.Command {
	connection := cli.NewFlags()
	connection.Namespace = nil
	var output outputFormat
	var namespace string
	var clientOnly bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the running controller",
		Long: `Prints the version of this program and that of the leader, which its Lease shows. It needs the right to list Leases,
or to get that of Weir's namespace.

Exit codes: 0 printed, also if no controller runs, 1 the API server cannot be reached, 2 a flag is wrong.`,
		Example: `  weir version

  # Without a cluster
  weir version --client`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := versions{Client: app.Version}, error(nil)
			if !clientOnly {
				v.Controller, err = readControllerVersion(cmd.Context(), connection, namespace)
			}
			if printed := v.write(cmd.OutOrStdout(), output.isJSON()); printed != nil {
				return printed
			}
			return err
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&clientOnly, "client", false, "print the version of this program alone, without a request")
	f.StringVar(&namespace, "weir-namespace", "weir-system", "where Weir runs, if you may not list the Leases of all namespaces")
	addOutputFlag(cmd, f, &output, "text, or json")
	addConnectionFlags(cmd, f, connection, "")
	completeFlag(cmd, "weir-namespace", completeNamespaces(connection))
	return cmd
}

func readControllerVersion(ctx context.Context, connection cli.Flags, namespace string) (*controllerVersion, error) {
	api, _, err := connection.NewClusterClient()
	if err != nil {
		return nil, err
	}
	l, _, err := status.ReadLeaderOf(ctx, api, namespace, time.Now())
	if err != nil {
		return nil, err
	}
	v := &controllerVersion{Version: l.Version, Leader: l.Holder, Namespace: l.Namespace}
	switch {
	case !l.Known:
		v.Why = "you may not read the Lease of the leader in namespace " + namespace
	case l.Holder == "":
		v.Why = "no process of Weir leads; weir doctor has the cause"
		v.Version = ""
	case l.Version == "":
		v.Why = "the leader's Lease does not show its version: it is older than this program"
	}
	return v, nil
}

func (v versions) write(out io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	text := "Client:     " + v.Client + "\n"
	switch c := v.Controller; {
	case c == nil:
	case c.Why != "":
		text += "Controller: not known: " + c.Why + "\n"
	default:
		text += fmt.Sprintf("Controller: %s (%s leads, in namespace %s)\n", sanitizeText(c.Version), sanitizeText(c.Leader), c.Namespace)
	}
	_, err := io.WriteString(out, text)
	return err
}
