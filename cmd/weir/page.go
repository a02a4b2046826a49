// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app/page"
	"weir.dev/weir/internal/app/reach"
)

func newPage() *cobra.Command {
	var kubeconfig string
	var o page.Options
	cmd := &cobra.Command{
		Use:   "page",
		Short: "Show in a browser what is not level, why, and when it is tried again",
		Long: `Serves a page on this machine that shows what weir status and weir explain say, and keeps it up to date
while somebody looks. It asks the API server with your own rights, and only reads. Its address has a key that is
new each time: other users of this machine do not know it.`,
		Example: `  # All namespaces
  weir page

  # What you may see of one namespace
  weir page -n shop

  # With the requests to Azure
  kubectl -n weir-system port-forward deployment/weir-controller 8082 &
  weir page

  # From another machine
  ssh -L 8030:127.0.0.1:8030 HOST weir page`,
		Args: flagsOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, _, err := reach.Cluster(kubeconfig)
			if err != nil {
				return err
			}
			o.API, o.Cluster, o.Out = api, reach.Name(kubeconfig), cmd.OutOrStdout()
			return page.Serve(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.Namespace, "namespace", "n", "", "show this namespace; empty: all")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:8030", "where browsers find it: an address of this machine alone")
	f.StringVar(&o.Server, "server", "http://127.0.0.1:8082", "where the controller's --operator-bind-address is reached, for requests to Azure")
	f.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file; empty: $KUBECONFIG or ~/.kube/config")
	return cmd
}
