// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"weir.dev/weir/lab/badlink"
)

// RemoteOptions configure the network to the remote cluster.
type RemoteOptions struct {
	// Network is the network once it is available.
	Network badlink.Network
	// Away is the initial outage.
	Away time.Duration
	// Out is standard output.
	Out io.Writer

	programFolder, emulatorPath string // see Options
}

// networkSeed makes the first three connections fail with a reset.
const networkSeed = 19

// maxOutage is the maximum of RemoteOptions.Away.
const maxOutage = time.Hour

// Validate checks the options.
func (o RemoteOptions) Validate() error {
	speed, resets := o.Network.BytesPerSecond, o.Network.ResetPercent
	switch {
	case o.Away < 0 || o.Away > maxOutage:
		return fmt.Errorf("--away %s: give 0s to %s", o.Away, maxOutage)
	case speed < badlink.MinBandwidth || speed > badlink.MaxBandwidth:
		return fmt.Errorf("--bytes-per-second %d: give %d to %d", speed, badlink.MinBandwidth, badlink.MaxBandwidth)
	case resets < 0 || resets > 100:
		return fmt.Errorf("--reset-percent %d: give 0 to 100", resets)
	}
	return nil
}

// Remote provisions a second cluster over a bad network until ctx is done, which is not an error.
func Remote(ctx context.Context, o RemoteOptions) error {
	if err := o.Validate(); err != nil {
		return err
	}
	err := runInFolder(ctx, Options{Seed: networkSeed, Out: o.Out, programFolder: o.programFolder, emulatorPath: o.emulatorPath}, func(r *run) error {
		return newRemote(r, o).runUntilDone(ctx)
	})
	if _, interrupted := errors.AsType[Interrupted](err); interrupted {
		return nil
	}
	return err
}

// remote is two clusters and the bad network from the first to the second.
type remote struct {
	*run
	RemoteOptions
	target   *lab // runs Kubernetes' controllers only
	link     *badlink.Link
	admin    string // URL of the network's admin API
	server   *http.Server
	networks chan badlink.Network
	cluster  *cluster
}

func newRemote(r *run, o RemoteOptions) *remote {
	r.lab = &lab{opts: r.opts, dir: r.dir, noAdminStates: true, place: remoteEnvironment()}
	far := &lab{opts: r.opts, dir: filepath.Join(r.dir, "remote"), place: place{nodes: 1}}
	return &remote{run: r, RemoteOptions: o, target: far, networks: make(chan badlink.Network, 16)}
}

// runUntilDone prepares everything and runs until ctx is done.
func (r *remote) runUntilDone(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	r.print.onWriteError = func(err error) { fail(outputGone{err}) }
	r.lab.onExit, r.lab.onLeaseLoss, r.target.onExit = fail, r.reportLeaseLoss, fail
	defer r.target.stopAll()
	defer r.lab.stopAll()
	defer r.stopNetwork()
	err := r.startRemote(ctx)
	if err == nil {
		r.printRemoteHelp()
		err = r.printProgress(ctx)
	}
	if err = r.rootCause(ctx, err); r.isInterrupted(err) {
		return Interrupted{}
	}
	r.printFailure(err)
	return err
}

// startRemote starts both clusters, the network and Weir.
func (r *remote) startRemote(ctx context.Context) error {
	r.print.printPlain("Weir in one cluster provisions another one over a bad network, which is away at",
		"first, then slow, and resets connections. store-17 is retried, and store-17-once",
		"is the same without retries.", "")
	if err := os.Mkdir(r.target.dir, 0o700); err != nil {
		return err
	}
	if err := errors.Join(r.lab.launchControlPlane(ctx), r.target.launchControlPlane(ctx)); err != nil {
		return err
	}
	if _, err := r.lab.controlPlane.FirstLine(ctx); err != nil {
		return err
	}
	r.print.printLine(plainText, "start", "Kubernetes: the cluster of Weir")
	if _, err := r.target.controlPlane.FirstLine(ctx); err != nil {
		return err
	}
	r.print.printLine(plainText, "start", "Kubernetes: the remote cluster, with one node and nothing in it")
	var err error
	if _, r.cluster, err = r.lab.installBase(ctx); err != nil {
		return err
	}
	if err := r.cluster.installRoles(ctx); err != nil {
		return err
	}
	if err := r.startNetwork(ctx); err != nil {
		return err
	}
	r.print.printLine(plainText, "start", "network: "+r.Network.String())
	if err := r.connectClusters(ctx); err != nil {
		return err
	}
	if err := r.lab.startProvisioner(ctx); err != nil {
		return err
	}
	r.print.printLine(plainText, "start", fmt.Sprintf("Weir: weir-provisioner, process %d", r.lab.provisioner.ProcessID()))
	return nil
}

// startNetwork starts the bad network in front of the remote cluster.
func (r *remote) startNetwork(ctx context.Context) error {
	server, err := r.target.apiServerHost()
	if err != nil {
		return err
	}
	begins := r.Network
	begins.Down = r.Away > 0
	if r.link, err = badlink.StartLink(ctx, server, begins, networkSeed); err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	r.admin = "http://" + listener.Addr().String() + "/"
	r.server = &http.Server{ReadHeaderTimeout: time.Second, MaxHeaderBytes: 16 << 10, Handler: r.link.Admin(func(n badlink.Network) {
		select {
		case r.networks <- n:
		case <-ctx.Done():
		}
	})}
	go func() {
		if err := r.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			r.lab.onExit(err)
		}
	}()
	return nil
}

func (r *remote) stopNetwork() {
	if r.link != nil {
		_ = r.link.Close() // already stopped
	}
	if r.server != nil {
		_ = r.server.Close()
	}
}
