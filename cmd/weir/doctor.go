// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/cli"
	"weir.dev/weir/internal/cli/doctor"
)

type doctorFlags struct {
	app.Options
	account    string
	health     healthFlags
	connection cli.Flags
	output     outputFormat
}

func newDoctor() *cobra.Command {
	flags := doctorFlags{connection: cli.NewFlags()}
	flags.connection.Namespace = nil
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what Weir needs, before it is installed and after",
		Long: `Checks the version and clock of the API server, each field of the definitions that this version needs, each right
of the controller's ServiceAccount (of your kubeconfig if the leader is no pod), and what runs: the Deployment and its
pods, the Secret with azure.json (its keys, never its content), the Lease of the leader, the leader's version, and the
admission policies. With --config it also checks azure.json, the resources that the controller reads in Azure, Azure's
clock, and the permissions of the identity. It is read-only, and each check times out
after 5 seconds, except --health, which is that of weir status. It reports UNKNOWN where you lack the rights to know.

Exit codes: 0 no check fails, 1 the API server cannot be reached, 2 a flag is wrong, 3 a check fails.`,
		Example: `  # The cluster, before and after it is installed
  weir doctor

  # Azure, too, as the controller itself
  kubectl -n weir-system exec deployment/weir-controller -- weir doctor --config /etc/weir/azure.json`,
		Args: rejectArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return flags.run(cmd) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&flags.ConfigFile, "config", "", "azure.json; empty: the cluster alone")
	f.StringVar(&flags.account, "service-account", "weir-system/weir", "NAMESPACE/NAME of the controller's ServiceAccount; in a pod its own by default")
	f.StringVar(&flags.ClusterName, "cluster-name", "kubernetes", "as the controller's")
	f.StringVar(&flags.AzureEndpoint, "azure-endpoint", "", "as the controller's: an emulator on this machine instead of Azure")
	flags.health.addTo(f, "read from Azure whether the members of a Service are all down")
	addOutputFlag(cmd, f, &flags.output, "text, or json")
	addConnectionFlags(cmd, f, flags.connection, "")
	completeFlag(cmd, "service-account", completeNamespaced(flags.connection, newServiceAccountList))
	return cmd
}

func (f *doctorFlags) run(cmd *cobra.Command) error {
	namespace, name, ok := strings.Cut(f.account, "/")
	switch {
	case !ok || namespace == "" || name == "" || strings.Contains(name, "/"):
		return &app.UsageError{Err: fmt.Errorf("--service-account %q: want NAMESPACE/NAME", f.account)}
	case f.ConfigFile == "" && f.AzureEndpoint != "":
		return &app.UsageError{Err: fmt.Errorf("--azure-endpoint requires --config")}
	}
	rc, err := f.connection.REST()
	if err != nil {
		return err
	}
	if rc.Timeout == 0 {
		rc.Timeout = doctor.CheckTimeout
	}
	api, err := cli.NewClient(rc)
	if err != nil {
		return err
	}
	if !cmd.Flags().Changed("service-account") {
		if podNamespace, account := f.connection.OwnAccount(cmd.Context(), api); account != "" {
			namespace, name = podNamespace, account
		}
	}
	d := doctor.Doctor{REST: rc, API: api, Namespace: namespace, ServiceAccount: name, IsAccountNamed: cmd.Flags().Changed("service-account")}
	if d.Health, err = f.health.newReader(f.connection); err != nil {
		return err
	}
	if f.ConfigFile != "" {
		f.Log = slog.New(slog.DiscardHandler) // the checks report warnings
		azure, err := app.OpenAzure(f.Options)
		d.Azure = &doctor.Azure{Azure: azure, Err: err}
	}
	return printChecks(cmd, d.RunChecks(cmd.Context()), f.output.isJSON())
}

// printChecks prints the report and returns the exit code as an error.
func printChecks(cmd *cobra.Command, r doctor.Report, asJSON bool) error {
	print := r.WriteText
	switch {
	case asJSON:
		print = r.WriteJSON
	case supportsColor():
		print = r.WriteColored
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
}
