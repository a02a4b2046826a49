// SPDX-License-Identifier: Apache-2.0

// Kubelab is a real Kubernetes control plane in one binary, for demos and tests without a cluster.
// Called as etcd, kube-apiserver or kubectl, it acts as that program; called as kubelab, it runs a small
// cluster in one process.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // CronJob time zones on hosts without zoneinfo

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl's auth plugins
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // kube-apiserver --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go metrics at /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/component-base/version/verflag"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

var programs = map[string]func() int{
	"etcd":           func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver": func() int { return cli.Run(app.NewAPIServerCommand()) },
	"kubectl":        runKubectl,
}

func main() {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if run, ok := programs[name]; ok {
		os.Exit(run())
	}
	// "kubelab kubectl get nodes" works without symlinks.
	if len(os.Args) > 1 {
		if run, ok := programs[os.Args[1]]; ok {
			os.Args = os.Args[1:]
			os.Exit(run())
		}
	}
	if err := newRootCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "kubelab:", err)
		os.Exit(exitCode(err))
	}
}

func runKubectl() int {
	// kubectl logs while it builds its commands, so set the verbosity before parsing flags.
	if _, err := logs.GlogSetter(kubectlVerbosity(os.Args)); err != nil {
		fmt.Fprintln(os.Stderr, "kubectl:", err)
		return 1
	}
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // prints the error as kubectl does, and exits
		return 1
	}
	return 0
}

func newRootCommand() *cobra.Command {
	names := []string{}
	for name := range programs {
		names = append(names, name)
	}
	slices.Sort(names)
	root := &cobra.Command{
		Use:   "kubelab",
		Short: "A real Kubernetes control plane in one process, for demos and tests",
		Long: "Kubelab runs etcd, kube-apiserver and the controllers behind a Deployment and its\n" +
			"EndpointSlices in one process, with a small fake kubelet instead of machines.\n\n" +
			"Called by another name (a symlink), or with it as the first word, it is that\n" +
			"program: " + strings.Join(names, ", ") + ".",
		SilenceErrors: true,
		SilenceUsage:  true,
		// component-base adds --version to every program.
		PersistentPreRun: func(*cobra.Command, []string) { verflag.PrintAndExitIfRequested() },
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q; see kubelab --help", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	root.AddCommand(newUpCommand())
	return root
}

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }
