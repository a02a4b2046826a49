// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/leader"
)

var errElection = errors.New("leader election lost")

// A leader ends by itself with an error when its lease expires; a clean shutdown has no error.
func TestEndOfLeadership(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ends  func(stop context.CancelFunc, f *leader.Fence) // runs after a minute
		run   error                                          // result of the manager
		fails string
		after time.Duration
	}{
		{"told to stop", func(stop context.CancelFunc, _ *leader.Fence) { stop() }, nil, "", time.Minute},
		{"told to stop, and it gives the lead back", func(stop context.CancelFunc, f *leader.Fence) { stop(); f.EndTerm(errElection) }, nil, "", time.Minute},
		{"frozen", func(_ context.CancelFunc, f *leader.Fence) { time.Sleep(time.Millisecond); f.EndTerm(errElection) }, nil, "the lead is lost: leader election lost", time.Minute + 500*time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				f := leader.NewFence(10*time.Second, func() time.Duration { return 0 })
				f.RecordRenew(leader.Epoch{Lease: "a/b"}, 0)
				parent, stop := context.WithCancel(t.Context())
				defer stop()
				ctx, cancel := context.WithCancelCause(parent)
				go func() {
					time.Sleep(time.Minute)
					tt.ends(stop, f)
				}()
				err := RunAsLeader(ctx, f, cancel, func(ctx context.Context) error { <-ctx.Done(); return tt.run })
				text := ""
				if err != nil {
					text = err.Error()
				}
				if elapsed := time.Since(began); text != tt.fails || elapsed != tt.after {
					t.Errorf("it ended after %s with %q, want %s and %q", elapsed, text, tt.after, tt.fails)
				}
			})
		})
	}
}

// If the manager ends first, the error still has the reason.
func TestLossReasonIsReported(t *testing.T) {
	f := leader.NewFence(time.Hour, func() time.Duration { return 0 })
	f.RecordRenew(leader.Epoch{Lease: "a/b"}, 0)
	f.EndTerm(errors.New("another has it"))
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	err := RunAsLeader(ctx, f, cancel, func(context.Context) error { return errElection })
	if !errors.Is(err, errElection) || err.Error() != "the lead is lost: another has it: leader election lost" {
		t.Error(err)
	}
}

// A leader that cannot begin returns the usage error.
func TestLeaderStartFailure(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&StartError{&UsageError{errElection}})
	err := RunAsLeader(ctx, nil, cancel, func(context.Context) error { return nil })
	if _, usage := errors.AsType[*UsageError](err); !usage {
		t.Error(err)
	}
}

func TestWithoutAnElectionNothingIsFenced(t *testing.T) {
	if f := NewFence(Options{Election: k8s.DefaultElection()}); f != nil {
		t.Error("there is a fence")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	if err := RunAsLeader(ctx, nil, cancel, func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
}
