// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/prometheus/client_golang/prometheus"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/azure"
)

// replica runs Weir processes in sequence: when one exits, the next starts, as under a kubelet.
type replica struct {
	stage        *Stage
	name         string
	process      atomic.Pointer[process] // the running process, or the last one
	processCount atomic.Int32
	// Closed to request a stop, and once nothing runs anymore.
	stopRequested, stopDone chan struct{}
}

// process is one run of Weir with its in-memory state.
type process struct {
	stage    *Stage
	name     string
	cancel   context.CancelFunc
	stopDone chan struct{}
	err      error // result of Run; valid after it ended
	// killed is set when the process is killed; later actions have no effect.
	killed  atomic.Bool
	metrics *prometheus.Registry
	// renewedAt is the send time of the last successful lease renewal, since the start of the stage.
	renewedAt atomic.Int64
}

// Tokens that must appear on the wire only.
const (
	azureToken = "canary-YXp1cmUtdG9rZW4"
	apiToken   = "canary-YXBpLXRva2Vu"
)

type credential struct{}

func (credential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: azureToken, ExpiresOn: time.Now().Add(1000 * time.Hour)}, nil
}

// restartDelay is the restart delay.
const restartDelay = 10 * time.Second

func (r *replica) startLoop() {
	r.stopRequested, r.stopDone = make(chan struct{}), make(chan struct{})
	r.startProcess()
	go r.runProcesses()
}

// runProcesses restarts the process whenever it exits.
func (r *replica) runProcesses() {
	defer close(r.stopDone)
	for {
		p := r.process.Load()
		select {
		case <-p.stopDone:
		case <-r.stopRequested:
			<-p.stopDone
			return
		}
		if p.err == nil && !p.killed.Load() && !r.stage.logs.hasLine("process="+p.name, "the lead is given up") {
			r.stage.addViolation("%s ended, and nobody had told it to", p.name)
		}
		r.stage.logs.addAction("%s ended: %v", p.name, p.err)
		select {
		case <-time.After(restartDelay):
		case <-r.stopRequested:
			return
		}
		r.startProcess()
	}
}

// startProcess starts a process with empty memory.
func (r *replica) startProcess() {
	s := r.stage
	s.emulator.ResetRetryAfter() // the new process does not know earlier answers
	p := &process{stage: s, name: fmt.Sprintf("%s.%d", r.name, r.processCount.Add(1)), stopDone: make(chan struct{}), metrics: prometheus.NewRegistry()}
	p.renewedAt.Store(notRenewed)
	r.process.Store(p)
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	endpoint, _, err := azure.LocalEndpoint("http://127.0.0.1:8080")
	if err != nil {
		panic(err) // constant input
	}
	api := s.api.RESTConfig(r.name)
	api.Transport = &apiWire{p, api.Transport}
	api.BearerToken = apiToken
	go func() {
		defer close(p.stopDone)
		defer cancel()
		p.err = app.RunWith(ctx, s.controllerFlags(s.logs.newLogger(p.name)), app.Dependencies{
			Config: s.cfg, API: api, Metrics: p.metrics,
			Azure: azure.Options{Endpoint: endpoint, Credential: credential{}, Transport: &azureWire{p, s.emulator.Transport()}},
		})
	}()
}

// KillProcess ends a process at once: its requests arrive, but it gets no response. A new process starts
// later.
func (s *Stage) KillProcess(replica int) {
	s.replicas[replica%len(s.replicas)].process.Load().applyKill()
	s.emulator.ResetRetryAfter() // the new leader does not know earlier answers
	s.opts.Settle()
}

func (p *process) applyKill() {
	p.killed.Store(true)
	p.cancel()
	p.stage.logs.addAction("%s is killed", p.name)
}

// stopProcess shuts the process down gracefully and does not restart it.
func (r *replica) stopProcess() {
	if r.stopRequested == nil {
		return
	}
	close(r.stopRequested)
	r.process.Load().cancel()
	<-r.stopDone
	r.stopRequested = nil
}
