// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/poolupdate"
)

// Written implements poolupdate.Ledger. It refuses if the BackendPool is gone, and if
// Wanted had no answer.
func (c *Cluster) Written(_ context.Context, ref poolupdate.Ref) ([]netip.Addr, bool, error) {
	e := c.statuses.known(ref)
	if e == nil || c.snap.pool(ref) == nil {
		return nil, false, errGone
	}
	if _, err := e.remembered(); err != nil {
		return nil, false, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return parseAddresses(e.status.WrittenAddresses), e.status.PoolID != "", nil
}

// Record implements poolupdate.Ledger. On an error nothing was recorded, as far as
// the next attempt is concerned; if the API has taken it all the same, the next write
// of the status replaces it.
func (c *Cluster) Record(ctx context.Context, ref poolupdate.Ref, intent poolupdate.Intent) error {
	e := c.statuses.known(ref)
	p := c.snap.pool(ref)
	if e == nil || p == nil {
		return errGone
	}
	st := c.snap.standingOf(p)
	e.writing.Lock()
	defer e.writing.Unlock()
	e.mu.Lock()
	before := *e.status.DeepCopy()
	e.mu.Unlock()
	err := c.statuses.updateLocked(ctx, e, func(s *v1alpha1.BackendPoolStatus) {
		s.PoolID = st.pool.String()
		s.WrittenAddresses = formatAddresses(intent.Written)
		unpark(s, p.Generation)
		setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonUpdating, updatingMessage(intent))
	})
	if err != nil {
		e.mu.Lock()
		e.status = before
		e.revision++
		e.mu.Unlock()
		return fmt.Errorf("recording what is about to be written: %w", err)
	}
	return nil
}
