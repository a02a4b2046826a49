// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli"
	"weir.dev/weir/internal/cli/page"
)

func newPage() *cobra.Command {
	connection := cli.NewFlags()
	var certificate, url, namespace string
	var o page.Options
	cmd := &cobra.Command{
		Use:   "page",
		Short: "Show in a browser what is out of sync, why, and when Weir retries",
		Long: `Serves a page on this machine with the output of weir status and weir explain, and refreshes it while it is
open. It reads from the API server with your own rights and writes nothing. Its URL contains a new key each time, so
that other users of this machine cannot open it.

With --certificate it serves other users too, as in the cluster: over HTTPS, on any address. Each viewer signs in with
a token of the cluster, which the API server reviews, and sees what that token may read.`,
		Example: `  # All namespaces
  weir page

  # What you may see of one namespace
  weir page -n shop

  # From another machine
  ssh -t -L 8030:127.0.0.1:8030 HOST weir page

  # In a pod, for every subject of weir-page-viewer
  weir page --listen :8443 --certificate /etc/weir/tls`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if certificate != "" {
				f := cmd.Flags()
				if f.Changed("namespace") || f.Changed("operator-url") {
					return &app.UsageError{Err: errors.New("--certificate: each viewer chooses a namespace, and --operator-url has no authentication: leave out -n and --operator-url")}
				}
				rc, own, err := connection.LoadConfig()
				if err != nil {
					return err
				}
				if _, err := rest.InClusterConfig(); err == nil && !f.Changed("weir-namespace") {
					namespace = own // the page runs in Weir's namespace
				}
				return page.ServeSecure(cmd.Context(), page.SecureOptions{
					API: rc, Client: cli.NewClient, Leader: func(rc *rest.Config) app.Connection { return cli.Leader{API: rc, Namespace: namespace}.Connection() },
					Cluster: connection.ContextName(), Listen: o.Listen, Certificate: certificate, Out: cmd.OutOrStdout(),
				})
			}
			api, _, err := connection.NewClusterClient()
			if err != nil {
				return err
			}
			if o.Connection, err = connection.NewConnection(url, namespace); err != nil {
				return err
			}
			o.Namespace = *connection.Namespace
			o.API, o.Cluster, o.Out = api, connection.ContextName(), cmd.OutOrStdout()
			return page.Serve(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.Listen, "listen", "127.0.0.1:8030", "where browsers find it: without --certificate an address of this machine alone")
	f.StringVar(&certificate, "certificate", "", "a directory with tls.crt and tls.key: HTTPS, for viewers with a token")
	f.StringVar(&url, "operator-url", "", "where a controller's --operator-bind-address is reached, for requests to Azure; empty: the leader, through the API server")
	f.StringVar(&namespace, "weir-namespace", "weir-system", "where Weir runs, for requests to Azure")
	addConnectionFlags(cmd, f, connection, "show this namespace; empty: all")
	completeFlag(cmd, "weir-namespace", completeNamespaces(connection))
	return cmd
}
