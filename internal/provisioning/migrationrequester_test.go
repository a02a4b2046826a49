// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/internal/k8s/store"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

type cluster struct {
	t    *testing.T
	api  client.Client
	on   store.Migration
	away atomic.Bool // unreachable
	lost string      // "before" loses the next request, "after" its response
	// wishes are the written requests, kept the recorded ID.
	wishes []string
	kept   string
	log    strings.Builder
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	gone := errors.New("no route to host")
	there := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: store.Name}}).Build()
	c.on = store.Migration{Reader: there, Writer: there, Namespace: "weir-system"}
	c.api = interceptor.NewClient(there, interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if c.away.Load() {
				return gone
			}
			return api.Get(ctx, key, obj, opts...)
		},
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			name, ok := obj.(*authenticationv1.SelfSubjectReview)
			if !ok {
				return errors.New("it makes nothing")
			}
			name.Status.UserInfo.Username = "edge"
			return nil
		},
		Update: func(ctx context.Context, api client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			lost := c.lost
			if c.lost = ""; lost == "before" {
				return gone
			}
			if c.kept == "" {
				t.Error("it is asked before that is on record")
			}
			c.wishes = append(c.wishes, c.kept)
			if err := api.Update(ctx, obj, opts...); err != nil || lost == "" {
				return err
			}
			return gone
		},
	})
	return c
}

func (c *cluster) runAttempt(n int, ok bool) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Minute)
	defer cancel()
	a := MigrationRequester{
		API: c.api, Namespace: "weir-system", Reason: "step migrate of Provision shop/edge", RequestID: fmt.Sprint("edge/", n), RecordedID: c.kept, Retry: ok,
		RecordID: func(_ context.Context, wish string) error { c.kept = wish; return nil },
		Logf:     func(format string, args ...any) { fmt.Fprintf(&c.log, format+"\n", args...) },
	}
	return a.Run(ctx)
}

// runLeader simulates the target's Weir, which polls every ten seconds.
func (c *cluster) runLeader(answer phase.Progress) {
	c.requireNoError(c.on.SaveReport(c.t.Context(), phase.NewProgress(phase.ProgressIdle)))
	go func() {
		for received := false; !received; {
			time.Sleep(10*time.Second + time.Millisecond)
			if c.t.Context().Err() != nil {
				return
			}
			_, requested, err := c.on.Load(c.t.Context())
			received = err == nil && requested.Run != nil && requested.Stop == nil
		}
		if answer.State == phase.ProgressDone {
			c.runMigration()
		}
		c.requireNoError(c.on.SaveReport(c.t.Context(), answer))
		c.requireNoError(c.on.ClearStartRequest(c.t.Context()))
	}()
}

func (c *cluster) runMigration() {
	j := phase.Journal{LoadBalancers: []phase.LoadBalancer{{ID: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes"}}}}
	c.requireNoError(c.on.SaveJournal(c.t.Context(), j))
	for done, ph := range phase.Phases()[:6] {
		c.requireNoError(c.on.SaveReport(c.t.Context(), phase.NewStepProgress(phase.Steps{Phase: ph, WaitReasons: []string{string(ph) + " takes time"}}, done, 6)))
		time.Sleep(20 * time.Second)
	}
	j.Done = true
	c.requireNoError(c.on.SaveJournal(c.t.Context(), j))
}

func (c *cluster) requireNoError(err error) {
	if err != nil && c.t.Context().Err() == nil {
		c.t.Error(err)
	}
}

// The migration is requested once and followed step by step.
func TestAMigrationFromAfar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.runLeader(phase.NewProgress(phase.ProgressDone))
		if err := c.runAttempt(1, false); err != nil || len(c.wishes) != 1 {
			t.Errorf("%v, asked %v", err, c.wishes)
		}
		for _, wantText := range []string{
			"requested by edge, at 2000-01-01T00:00:00Z: step migrate of Provision shop/edge\n", "has not started it, requested by edge",
			"1 of 6 steps are done; next is Detach; waits for: Detach takes time\n", "4 of 6 steps are done; next is Make", "no load balancer of the cluster is Basic any more\n",
		} {
			if !strings.Contains(c.log.String(), wantText) {
				t.Errorf("the log has no %q:\n%s", wantText, c.log.String())
			}
		}
	})
}

// After a lost connection or process, the next attempt repeats the request only if it did not
// arrive.
func TestALinkThatIsLost(t *testing.T) {
	for _, tt := range []struct {
		about  string
		loses  func(*cluster)
		wishes string
	}{
		{"before it is asked", func(c *cluster) { c.away.Store(true) }, "edge/2"},
		{"on the way there", func(c *cluster) { c.lost = "before" }, "edge/2"},
		{"on the way back", func(c *cluster) { c.lost = "after" }, "edge/1"},
		{"after it was asked", func(c *cluster) { time.AfterFunc(5*time.Second, func() { c.away.Store(true) }) }, "edge/1"},
		{"under way", func(c *cluster) { time.AfterFunc(time.Minute, func() { c.away.Store(true) }) }, "edge/1"},
	} {
		for _, later := range []time.Duration{time.Second, time.Hour} {
			t.Run(fmt.Sprint(tt.about, " ", later), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(t)
					c.runLeader(phase.NewProgress(phase.ProgressDone))
					tt.loses(c)
					if err := c.runAttempt(1, false); err == nil || errors.As(err, new(MigrationRejectedError)) {
						t.Fatalf("the link is lost: %v", err)
					}
					time.Sleep(later)
					c.away.Store(false)
					if err := c.runAttempt(2, false); err != nil || strings.Join(c.wishes, " ") != tt.wishes {
						t.Errorf("%v, asked %v, want %s\n%s", err, c.wishes, tt.wishes, c.log.String())
					}
				})
			})
		}
	}
}

// A rejection ends the step, even if it arrives while the connection is down, until a user requests
// a retry.
func TestAMigrationThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		no := phase.NewProgress(phase.ProgressRejected, "ForeignRule: rule x belongs to no Service")
		c.runLeader(no)
		time.AfterFunc(5*time.Second, func() { c.away.Store(true) })
		if err := c.runAttempt(1, false); err == nil || errors.As(err, new(MigrationRejectedError)) {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		c.away.Store(false)
		if err := c.runAttempt(2, false); !errors.As(err, new(MigrationRejectedError)) || !strings.Contains(err.Error(), "rule x belongs to no Service") || len(c.wishes) != 1 {
			t.Errorf("%v, asked %v", err, c.wishes)
		}
		c.runLeader(phase.NewProgress(phase.ProgressDone))
		if err := c.runAttempt(3, true); err != nil || strings.Join(c.wishes, " ") != "edge/1 edge/3" {
			t.Errorf("%v, asked %v", err, c.wishes)
		}
	})
}

// Nothing is requested while a user of the target has stopped it, and an undone migration is not
// restarted.
func TestStoppedMigrationIsNotRequested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.runLeader(phase.NewProgress(phase.ProgressDone))
		stop := func(w *phase.UserRequest) {
			before := c.kept
			c.requireNoError(store.UpdateRequests(t.Context(), c.on.Reader.(client.Client), "weir-system", func(r store.Record) (phase.UserRequests, error) {
				a := r.MigrationRequests()
				a.Stop = w
				return a, nil
			}))
			c.kept = before
		}
		stop(&phase.UserRequest{By: "jane", Reason: "the shop is open"})
		if err := c.runAttempt(1, false); !errors.As(err, new(MigrationRejectedError)) || !strings.Contains(err.Error(), "by jane: the shop is open") || len(c.wishes) > 0 {
			t.Errorf("%v, asked %v", err, c.wishes)
		}
		stop(nil)
		if err := c.runAttempt(2, true); err != nil || len(c.wishes) != 1 {
			t.Errorf("%v, asked %v", err, c.wishes)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		j := phase.Journal{LoadBalancers: []phase.LoadBalancer{{ID: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "kubernetes"}}}}
		c.requireNoError(errors.Join(c.on.SaveJournal(t.Context(), j), c.on.SaveReport(t.Context(), phase.NewStepProgress(phase.Steps{Phase: phase.PhaseDetach}, 1, 6))))
		time.AfterFunc(time.Minute, func() {
			c.requireNoError(store.UpdateRequests(t.Context(), c.on.Reader.(client.Client), "weir-system", func(store.Record) (phase.UserRequests, error) {
				return phase.UserRequests{Stop: &phase.UserRequest{By: "jane", Undo: true}}, nil
			}))
			j.CompletedUndo = &phase.UserRequest{By: "jane"}
			_, err := c.on.CompleteUndo(t.Context(), j)
			c.requireNoError(err)
		})
		if err := c.runAttempt(1, false); !errors.As(err, new(MigrationRejectedError)) || !strings.Contains(err.Error(), "by jane") || len(c.wishes) > 0 {
			t.Errorf("%v, asked %v", err, c.wishes)
		}
	})
}

// Without a responding Weir, the attempt waits until its deadline.
func TestRequestWithoutAnswer(t *testing.T) {
	for about, then := range map[string]func(*cluster){
		"no Weir of a version that supports it": func(*cluster) {},
		"the Weir there has not started it": func(c *cluster) {
			c.requireNoError(c.on.SaveReport(c.t.Context(), phase.NewProgress(phase.ProgressIdle)))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			then(c)
			began := time.Now()
			err := c.runAttempt(1, false)
			if errors.As(err, new(MigrationRejectedError)) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), about) || time.Since(began) != 30*time.Minute {
				t.Errorf("%s: %v after %s", about, err, time.Since(began))
			}
		})
	}
}
