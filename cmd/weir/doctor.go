// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/app/doctor"
	"weir.dev/weir/internal/app/reach"
)

func newDoctor() *cobra.Command {
	var opts app.Options
	var account, output string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say whether Weir has what it needs, before it is installed and after",
		Long: `Checks the version and clock of the API server, each field of the definitions that this version needs, and each
right of the controller's ServiceAccount. With --config it also checks azure.json, the resources that the controller
reads in Azure, Azure's clock, and the permissions of the identity. It is read-only, and each check times out
after 5 seconds. It reports UNKNOWN where you lack the rights to know.

Exit codes: 0 no check fails, 1 the API server cannot be reached, 2 a flag is wrong, 3 a check fails.`,
		Example: `  # The cluster, before and after it is installed
  weir doctor

  # Azure, too, as the controller itself
  kubectl -n weir-system exec deployment/weir-controller -- weir doctor --config /etc/weir/azure.json`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			namespace, name, both := strings.Cut(account, "/")
			switch {
			case output != "text" && output != "json":
				return &app.UsageError{Err: fmt.Errorf("-o %q: want text or json", output)}
			case !both || namespace == "" || name == "" || strings.Contains(name, "/"):
				return &app.UsageError{Err: fmt.Errorf("--service-account %q: want NAMESPACE/NAME", account)}
			case opts.ConfigFile == "" && opts.AzureEndpoint != "":
				return &app.UsageError{Err: fmt.Errorf("--azure-endpoint requires --config")}
			}
			rc, _, err := reach.LoadConfig(opts.Kubeconfig)
			if err != nil {
				return err
			}
			rc.Timeout = doctor.CheckTimeout
			api, err := reach.NewClient(rc)
			if err != nil {
				return err
			}
			d := doctor.Doctor{REST: rc, API: api, Namespace: namespace, ServiceAccount: name}
			if opts.ConfigFile != "" {
				opts.Log = slog.New(slog.DiscardHandler) // the checks report warnings
				azure, err := app.OpenAzure(opts)
				d.Azure = &doctor.Azure{Azure: azure, Err: err}
			}
			r := d.RunChecks(cmd.Context())
			print := r.WriteText
			if output == "json" {
				print = r.WriteJSON
			}
			switch err := print(cmd.OutOrStdout()); {
			case err != nil:
				return err
			case !r.HasResponse():
				return exitCode(1)
			case r.CountResults(doctor.Fail) > 0:
				return exitProblems
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&opts.ConfigFile, "config", "", "azure.json; empty: the cluster alone")
	f.StringVar(&account, "service-account", "weir-system/weir", "NAMESPACE/NAME of the controller's ServiceAccount")
	f.StringVar(&opts.ClusterName, "cluster-name", "kubernetes", "as the controller's")
	f.StringVar(&opts.AzureEndpoint, "azure-endpoint", "", "as the controller's: an emulator on this machine instead of Azure")
	f.StringVarP(&output, "output", "o", "text", "text, or json")
	f.StringVar(&opts.Kubeconfig, "kubeconfig", "", "kubeconfig file; empty: $KUBECONFIG or ~/.kube/config")
	return cmd
}
