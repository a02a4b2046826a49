// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"time"
	"unicode"
	"unicode/utf8"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/k8s/store"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/skumigration"
	"weir.dev/weir/internal/skumigration/phase"
)

// MigrationCommand reads and controls a migration with the user's permissions.
type MigrationCommand struct {
	PlanOptions
	// RecordNamespace is the namespace of Weir's record; empty means installNamespace.
	RecordNamespace string
}

const watchInterval = 5 * time.Second

// ReadStatus returns the state of the migration. It writes nothing.
func (m MigrationCommand) ReadStatus(ctx context.Context) (skumigration.Status, error) {
	p, err := newPlanner(m.PlanOptions)
	if err != nil {
		return skumigration.Status{}, err
	}
	if err := p.readObjects(ctx); err != nil {
		return skumigration.Status{}, err
	}
	c, err := p.offlineMigrationConfig()
	if err != nil {
		return skumigration.Status{}, err
	}
	api, err := m.newClient()
	if err != nil {
		return skumigration.Status{}, err
	}
	r, err := store.Read(ctx, api, m.recordNamespace())
	if err != nil {
		return skumigration.Status{}, err
	}
	leader, err := k8s.FindLeader(ctx, api, LeaseName, time.Now())
	if err != nil {
		return skumigration.Status{}, err
	}
	if leader.Namespace != m.recordNamespace() {
		leader.Holder = ""
	}
	c.Store = readOnlyStore{r}
	return skumigration.BuildStatus(ctx, c, leader.Holder)
}

// WatchStatus calls show on every change until it returns enough or ctx is done. It retries failed reads except the
// first.
func (m MigrationCommand) WatchStatus(ctx context.Context, show func(skumigration.Status) (enough bool, err error)) error {
	last := ""
	for {
		s, err := m.ReadStatus(ctx)
		switch {
		case err != nil && (last == "" || ctx.Err() != nil):
			return err
		case err != nil:
			m.Log.Warn("it is looked again", "err", err)
		case s.Text() != last:
			last = s.Text()
			if enough, err := show(s); enough || err != nil {
				return err
			}
		}
		if err := ratelimit.Sleep(ctx, watchInterval); err != nil {
			return err
		}
	}
}

// RequestStop requests a stop before the next step and returns the effective request: an earlier one is retained.
func (m MigrationCommand) RequestStop(ctx context.Context, reason string) (phase.UserRequest, error) {
	var effective phase.UserRequest
	err := m.updateRequest(ctx, reason, func(_ store.Record, a *phase.UserRequests, request phase.UserRequest) error {
		if a.Stop == nil {
			a.Stop = &request
		}
		effective = *a.Stop
		return nil
	})
	return effective, err
}

// RequestRollback requests a rollback; it replaces an earlier stop. It fails once a step is irreversible.
func (m MigrationCommand) RequestRollback(ctx context.Context, reason string) (phase.UserRequest, error) {
	var effective phase.UserRequest
	err := m.updateRequest(ctx, reason, func(r store.Record, a *phase.UserRequests, request phase.UserRequest) error {
		j, err := r.MigrationJournal()
		if err != nil {
			return err
		}
		if *a, err = a.RequestUndo(j, request); err == nil {
			effective = *a.Stop
		}
		return err
	})
	return effective, err
}

// CancelStop withdraws a stop and returns it; nil if there is none.
func (m MigrationCommand) CancelStop(ctx context.Context) (*phase.UserRequest, error) {
	var old *phase.UserRequest
	err := m.updateRequest(ctx, "", func(_ store.Record, a *phase.UserRequests, _ phase.UserRequest) error {
		old, a.Stop = a.Stop, nil
		return nil
	})
	return old, err
}

// ReplaceAddress gives a Service a new address when Azure has rejected its old one since a migration.
func (m MigrationCommand) ReplaceAddress(ctx context.Context, ip netip.Addr, reason string) error {
	return m.updateRequest(ctx, reason, func(r store.Record, a *phase.UserRequests, request phase.UserRequest) error {
		j, err := r.MigrationJournal()
		if err != nil {
			return err
		}
		*a, err = a.ReleaseAddress(j, ip, request)
		return err
	})
}

// RequestStart requests a migration that does not start on its own.
func (m MigrationCommand) RequestStart(ctx context.Context) error {
	return m.updateRequest(ctx, "", func(_ store.Record, a *phase.UserRequests, request phase.UserRequest) error {
		a.Run = &request
		return nil
	})
}

// maxReasonLength is in characters.
const maxReasonLength = 200

func (m MigrationCommand) updateRequest(ctx context.Context, reason string, change func(store.Record, *phase.UserRequests, phase.UserRequest) error) error {
	if n := utf8.RuneCountInString(reason); n > maxReasonLength {
		return &UsageError{Err: fmt.Errorf("--why has %d letters: want %d at most", n, maxReasonLength)}
	}
	for _, r := range reason {
		if !unicode.IsPrint(r) {
			return &UsageError{Err: fmt.Errorf("--why %q: want one line of text", reason)}
		}
	}
	api, err := m.newClient()
	if err != nil {
		return err
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := api.Create(ctx, review); err != nil {
		return fmt.Errorf("requesting user: %w", err)
	}
	request := phase.UserRequest{At: time.Now().UTC().Truncate(time.Second), By: review.Status.UserInfo.Username, Reason: reason}
	return store.UpdateRequests(ctx, api, m.recordNamespace(), func(r store.Record) (phase.UserRequests, error) {
		requested := r.MigrationRequests()
		return requested, change(r, &requested, request)
	})
}

func (m MigrationCommand) recordNamespace() string {
	return cmp.Or(m.RecordNamespace, installNamespace)
}

func (m MigrationCommand) newClient() (client.Client, error) {
	rc, err := m.clusterConfig()
	if err != nil {
		return nil, err
	}
	rc.QPS, rc.UserAgent = -1, "weir/"+Version
	scheme := metadata.Scheme()
	for _, add := range []func() error{
		func() error { return coordinationv1.AddToScheme(scheme) },
		func() error { return authenticationv1.AddToScheme(scheme) },
	} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	api, err := client.New(rc, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	return api, nil
}
