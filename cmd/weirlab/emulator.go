// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/internal/zones"
	"weir.dev/weir/lab/armemu"
)

const maxCalls = 100_000

// usageError is a usage error; the process ends with code 2.
type usageError struct{ error }

func (usageError) ExitCode() int   { return 2 }
func (e usageError) Unwrap() error { return e.error }

type emulatorFlags struct {
	listen, adminListen string
	allowRemote         bool
	tls                 bool
	certificate         string
	faults, seedFile    string
	latency             string
	latencyScale        float64
	behaviour, overlap  string
	throttle            string
	strictGroups        bool
	lockedGroups        []string
	seed                uint64
	token               string
	role                string
	zones               []string
	output              string
	exitWithStdin       bool
}

func newEmulatorCommand() *cobra.Command {
	var f emulatorFlags
	cmd := &cobra.Command{
		Use:   "emulator",
		Short: "Serve an emulated Azure Resource Manager for load balancers",
		Long: `Serves the part of Azure Resource Manager that Weir talks to: load balancers with
their backend pools, public IPs and prefixes, virtual networks, network interfaces
and machines as far as these are referred to. It models etags, If-Match,
long-running operations, overlapping writes, throttling and validation, and
injects faults from a script. Nothing is kept when it ends.

The admin API under /_emu/ has a listener of its own: call log, statistics,
snapshots, fault scripts, and where new flows go when nodes die. See docs/reference/emulator.md.`,
		Example: `  weirlab emulator
  weirlab emulator --latency busy --overlap mixed --faults faults.yaml
  weirlab emulator --azure-behaviour report.json
  curl -H 'Authorization: Bearer any' \
    'http://127.0.0.1:8900/subscriptions/s/providers/Microsoft.Network/loadBalancers?api-version=2025-05-01'
  curl http://127.0.0.1:8901/_emu/calls`,
		Args:         rejectArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return f.runEmulator(ctx, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	f.addFlags(cmd)
	return cmd
}

func (f *emulatorFlags) addFlags(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&f.listen, "listen", "127.0.0.1:8900", "address of the ARM endpoint; port 0 is any free one")
	set.StringVar(&f.adminListen, "admin-listen", "127.0.0.1:8901", "address of the admin API; port 0 is any free one")
	set.BoolVar(&f.allowRemote, "anyone-on-the-network-may-change-state", false,
		"allow addresses that are not loopback: any client there can read and rewrite everything")
	set.BoolVar(&f.tls, "tls", false, "serve HTTPS with a self-signed certificate made in memory")
	set.StringVar(&f.certificate, "tls-certificate-out", "", "with --tls, write the certificate (not its key) to this file for clients to trust")
	set.StringVar(&f.faults, "faults", "", "fault script to start with (YAML)")
	set.StringVar(&f.seedFile, "seed-file", "", `resources to start with: a snapshot, a JSON array of {"id","body"}`)
	set.Float64Var(&f.latencyScale, "latency-scale", 1, "multiplies --latency; 0 completes operations at once")
	set.StringVar(&f.behaviour, "azure-behaviour", "", `assumptions about Azure: a JSON object with the key "behaviour", such as a probe's report`)
	set.StringVar(&f.overlap, "overlap", "", fmt.Sprintf("what a write meets while another runs on its load balancer, before --azure-behaviour: one of %v (the first when empty)", append(armemu.OverlapAnswers(), behavior.Mixed)))
	set.StringVar(&f.latency, "latency", "quiet", "how long operations take: quiet (recorded without machines) or busy (with machines in service)")
	set.BoolVar(&f.strictGroups, "strict-resource-groups", false, "return 404 for resources in a resource group that was not created (otherwise any write creates its group)")
	set.StringSliceVar(&f.lockedGroups, "locked-group", nil, "name of a resource group in which a deny assignment blocks all but reads, as AKS's node resource group lockdown does")
	set.StringVar(&f.throttle, "throttle", "on", "Azure's documented request limits: on or off")
	set.Uint64Var(&f.seed, "seed", 1, "makes etags, latencies and fault probabilities repeatable")
	set.StringVar(&f.token, "token", "", "bearer token that requests must carry (any token when empty)")
	set.StringVar(&f.role, "role", "", "Azure role definition (JSON) of the caller: other actions are rejected with 403 (all are allowed when empty)")
	set.StringSliceVar(&f.zones, "zones", nil, "availability zones of every region, such as 1,2,3 (none when empty)")
	set.StringVarP(&f.output, "output", "o", "text", "how to print the endpoints: text, or json for one line")
	set.BoolVar(&f.exitWithStdin, "exit-with-stdin", false, "end when standard input closes, as it does when the parent process ends")
}

func (f *emulatorFlags) newEmulator() (*armemu.Emulator, error) {
	opts := armemu.Options{Seed: f.seed, Token: f.token, StrictResourceGroups: f.strictGroups, LockedGroups: f.lockedGroups, CallLogCap: maxCalls}
	if len(f.zones) > 0 {
		valid := false
		if opts.Zones, valid = zones.Normalize(f.zones); !valid {
			return nil, fmt.Errorf("--zones %s: want %s", strings.Join(f.zones, ","), zones.Rule)
		}
	}
	if err := loadFile(f.behaviour, func(raw []byte) (err error) {
		opts.Behavior, err = armemu.ParseBehavior(raw)
		return err
	}); err != nil {
		return nil, fmt.Errorf("--azure-behaviour: %w", err)
	}
	if f.overlap != "" {
		var err error
		if opts.Behavior, err = opts.Behavior.WithResult("overlap", behavior.Result(f.overlap)); err != nil {
			return nil, fmt.Errorf("--overlap: %w", err)
		}
	}
	switch f.throttle {
	case "on":
		opts.Throttle = armemu.AzureLimits()
	case "off":
	default:
		return nil, fmt.Errorf("--throttle %q: use on or off", f.throttle)
	}
	if f.output != "text" && f.output != "json" {
		return nil, fmt.Errorf("--output %q: use text or json", f.output)
	}
	if f.certificate != "" && !f.tls {
		return nil, errors.New("--tls-certificate-out needs --tls: there is no certificate without it")
	}
	if err := loadFile(f.role, func(raw []byte) (err error) {
		opts.Role, err = armemu.ParseRole(raw)
		return err
	}); err != nil {
		return nil, fmt.Errorf("--role: %w", err)
	}
	emu := armemu.New(opts)
	if err := emu.SetLatency(armemu.Latency(f.latency)); err != nil {
		return nil, fmt.Errorf("--latency: %w", err)
	}
	if err := emu.SetLatencyScale(f.latencyScale); err != nil {
		return nil, fmt.Errorf("--latency-scale: %w", err)
	}
	if err := loadFile(f.seedFile, emu.Restore); err != nil {
		return nil, fmt.Errorf("--seed-file: %w", err)
	}
	if err := loadFile(f.faults, func(raw []byte) error { return emu.SetFaults(string(raw)) }); err != nil {
		return nil, fmt.Errorf("--faults: %w", err)
	}
	return emu, nil
}

func loadFile(file string, into func([]byte) error) error {
	if file == "" {
		return nil
	}
	raw, err := os.ReadFile(file) //nolint:gosec // the user names it
	if err != nil {
		return err
	}
	if err := into(raw); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// checkLoopback rejects other addresses unless they are allowed.
func (f *emulatorFlags) checkLoopback(flag, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s %q: %w: write host:port", flag, address, err)
	}
	if f.allowRemote || host == "localhost" || net.ParseIP(host).IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s %q is not a loopback address: anyone on the network could read and rewrite the emulator's state; "+
		"listen on 127.0.0.1, or accept that with --anyone-on-the-network-may-change-state", flag, address)
}

func (f *emulatorFlags) runEmulator(ctx context.Context, stdin io.Reader, out io.Writer) error {
	if err := errors.Join(f.checkLoopback("--listen", f.listen), f.checkLoopback("--admin-listen", f.adminListen)); err != nil {
		return usageError{err}
	}
	emu, err := f.newEmulator()
	if err != nil {
		return usageError{err}
	}
	var lc net.ListenConfig
	arm, err := lc.Listen(ctx, "tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	admin, err := lc.Listen(ctx, "tcp", f.adminListen)
	if err != nil {
		return errors.Join(fmt.Errorf("--admin-listen: %w", err), arm.Close())
	}
	scheme := "http"
	if f.tls {
		scheme = "https"
		config, err := selfSigned(f.certificate, arm.Addr(), admin.Addr())
		if err != nil {
			return errors.Join(err, arm.Close(), admin.Close())
		}
		arm, admin = tls.NewListener(arm, config), tls.NewListener(admin, config)
	}
	if err := f.printEndpoints(out, emu, scheme+"://"+arm.Addr().String(), scheme+"://"+admin.Addr().String()+"/_emu/"); err != nil {
		return errors.Join(err, arm.Close(), admin.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.exitWithStdin {
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			cancel()
		}()
	}
	return serveAll(ctx, map[net.Listener]http.Handler{arm: emu, admin: emu.Admin()})
}

func (f *emulatorFlags) printEndpoints(out io.Writer, emu *armemu.Emulator, endpoint, admin string) error {
	if f.output == "json" {
		return json.NewEncoder(out).Encode(map[string]string{"endpoint": endpoint, "admin": admin})
	}
	token := "any bearer token"
	if f.token != "" {
		token = "the bearer token of --token"
	}
	_, err := fmt.Fprintf(out, `ARM emulator
  endpoint  %s
  admin     %s
  accepts   %s
  overlap   %s
  azure     %s
  latency   %s, x%g
  throttle  %s
  seed      %d
Ctrl-C stops it; its state is not kept.
`, endpoint, admin, token, emu.Behavior().Overlap, emu.Behavior(), f.latency, f.latencyScale, f.throttle, f.seed)
	return err
}

// serveAll runs the handlers until ctx ends or one fails, then stops all of them. Requests inherit ctx, so
// injected delays do not block shutdown.
func serveAll(ctx context.Context, handlers map[net.Listener]http.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(handlers))
	var servers []*http.Server
	for listener, handler := range handlers {
		server := &http.Server{
			Handler: handler, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
			BaseContext: func(net.Listener) context.Context { return ctx },
		}
		servers = append(servers, server)
		go func() { ended <- server.Serve(listener) }()
	}
	var failure error
	waiting := len(handlers)
	select {
	case <-ctx.Done():
	case failure = <-ended:
		waiting--
		cancel()
	}
	grace, done := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer done()
	for _, server := range servers {
		if server.Shutdown(grace) != nil {
			_ = server.Close() // cancel requests that did not finish in time
		}
	}
	for range waiting {
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			failure = errors.Join(failure, err)
		}
	}
	return failure
}
