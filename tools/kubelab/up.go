// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
)

// startTimeout bounds startup, which takes about 10 s on a loaded two-core machine.
const startTimeout = 2 * time.Minute

type upOptions struct {
	dir           string // "" creates a temporary directory, removed at exit
	kubeconfig    string // "" means a file in dir
	auditLog      string // "" disables it
	port          int    // 0 selects a free port
	nodes         int
	dualStack     bool
	exitWithStdin bool
}

func newUpCommand() *cobra.Command {
	var opts upOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a cluster until SIGTERM or Ctrl-C",
		Long: "Up runs etcd, kube-apiserver, the Deployment, ReplicaSet, EndpointSlice and\n" +
			"Namespace controllers, the garbage collector and a fake kubelet in this process,\n" +
			"on 127.0.0.1 alone. It prints one line when the cluster is ready.\n\n" +
			"Every Node object becomes a machine that runs whatever is bound to it. Label or\n" +
			"annotate a Node with " + deadKey + "=true and its machine is lost.",
		Example: "  kubelab up --nodes 3 --kubeconfig /tmp/lab.kubeconfig\n" +
			"  kubectl --kubeconfig /tmp/lab.kubeconfig get nodes",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("up takes no arguments, got %q; see %s --help", args, cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return up(ctx, opts, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&opts.dir, "dir", "", "`directory` for etcd's data, keys and the log; kept, and used again next time (default a fresh one that is removed at exit)")
	flags.IntVar(&opts.port, "port", 0, "`port` of kube-apiserver on 127.0.0.1; 0 takes a free one")
	flags.StringVar(&opts.kubeconfig, "kubeconfig", "", "`file` to write the administrator's kubeconfig to (default kubeconfig in the directory)")
	flags.IntVar(&opts.nodes, "nodes", 0, "`number` of nodes to create, node-1 with InternalIP 10.224.0.4 and so on")
	flags.BoolVar(&opts.dualStack, "dual-stack", false, "give Services, pods and nodes IPv6 addresses besides IPv4")
	flags.StringVar(&opts.auditLog, "audit-log", "", "`file` for one line of JSON a request, without bodies")
	flags.BoolVar(&opts.exitWithStdin, "exit-with-stdin", false, "stop when standard input is closed, so that no cluster outlives what started it")
	return cmd
}

func (o upOptions) validate() error {
	switch {
	case o.port < 0 || o.port > 65535:
		return usageError{fmt.Errorf("--port %d is no TCP port; give 1 to 65535, or 0 for a free one", o.port)}
	case o.nodes < 0 || o.nodes > maxNodes:
		return usageError{fmt.Errorf("--nodes %d is out of range; give 0 to %d", o.nodes, maxNodes)}
	}
	for flag, file := range map[string]string{"--kubeconfig": o.kubeconfig, "--audit-log": o.auditLog} {
		if file == "" {
			continue
		}
		if parent, err := os.Stat(filepath.Dir(file)); err != nil || !parent.IsDir() {
			return usageError{fmt.Errorf("%s %s: its directory does not exist; create it first", flag, file)}
		}
	}
	return nil
}

// up runs a cluster until ctx is done, or until stdin closes if requested. It does not shut the
// components down: the process exits anyway, and a clean stop takes seconds.
func up(ctx context.Context, opts upOptions, stdin io.Reader, stdout io.Writer) (err error) {
	began := time.Now()
	if err := opts.validate(); err != nil {
		return err
	}
	if opts.exitWithStdin {
		ctx = doneAtEOF(ctx, stdin)
	}
	dir, remove, err := openDirectory(opts.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if opts.kubeconfig == "" {
		opts.kubeconfig = filepath.Join(dir, "kubeconfig")
	}
	if opts.kubeconfig, err = filepath.Abs(opts.kubeconfig); err != nil {
		return err
	}
	logFile := filepath.Join(dir, "kubelab.log")
	if err := logTo(logFile); err != nil {
		return err
	}

	failed, err := start(ctx, opts, dir, logFile)
	switch {
	case ctx.Err() != nil:
		return nil // interrupted during startup
	case err != nil:
		return err
	}
	_, _ = fmt.Fprintf(stdout, "kubelab: ready in %.1fs, kubeconfig %s\n", time.Since(began).Seconds(), opts.kubeconfig)
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return fmt.Errorf("kube-apiserver stopped: %w", err)
	}
}

// start starts all components in order and returns when the cluster is ready. The channel receives
// kube-apiserver's error when it stops.
func start(ctx context.Context, opts upOptions, dir, logFile string) (<-chan error, error) {
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	etcdURL, err := startEtcd(starting, filepath.Join(dir, "etcd"), logFile)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	server, err := startAPIServer(ctx, apiServerOptions{
		dir: dir, etcdURL: etcdURL, port: opts.port, auditLog: opts.auditLog, dualStack: opts.dualStack,
	})
	if err != nil {
		return nil, fmt.Errorf("start kube-apiserver: %w", err)
	}
	if err := server.waitReady(starting); err != nil {
		return nil, fmt.Errorf("%w; its log was in %s, give --dir to keep it", err, logFile)
	}
	if err := startControllers(ctx, starting, server.config, opts.dualStack); err != nil {
		return nil, fmt.Errorf("start controllers: %w", err)
	}
	if err := createNodes(starting, server.config, opts.nodes, opts.dualStack); err != nil {
		return nil, err
	}
	return server.failed, writeKubeconfig(opts.kubeconfig, server.config)
}

// doneAtEOF returns a context that is canceled at the end of r.
func doneAtEOF(ctx context.Context, r io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, r)
	}()
	return ctx
}

// exitCode returns 2 for a usage error, else 1.
func exitCode(err error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return 2
	}
	return 1
}

// withoutRateLimits returns a copy of config without client-side rate limits and with protobuf encoding.
func withoutRateLimits(config *rest.Config, name string) *rest.Config {
	c := rest.AddUserAgent(rest.CopyConfig(config), name)
	c.QPS = -1
	c.ContentType = "application/vnd.kubernetes.protobuf"
	c.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return c
}
