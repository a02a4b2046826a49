// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
)

var errRecordConflict = errors.New("another process has recorded addresses meanwhile; it is read again")

// readRecord returns the record for an attempt, which then includes the records of other processes.
func (e *Entry) readRecord() diff.Record {
	e.mu.Lock()
	e.otherRecord = nil // the status already includes it
	e.mu.Unlock()
	return e.MemberRecord()
}

// MemberRecord returns what Weir recorded for the pool.
func (e *Entry) MemberRecord() diff.Record {
	e.mu.Lock()
	defer e.mu.Unlock()
	return diff.Record{
		Written: ParseAddresses(e.status.WrittenAddresses), Down: ParseDown(e.status.Down), Adopted: e.status.PoolID != "",
		Instances: ParseInstances(e.status.WrittenInstances),
	}
}

// Record implements updater.StatusStore. After an error the next attempt assumes that nothing was recorded; if
// the API server did accept it, the next status write replaces it.
func (c *Controller) Record(ctx context.Context, ref schedule.Ref, intent diff.Intent) error {
	e, p := c.lookupEntry(ref)
	if p == nil {
		return metadata.ErrDeleted
	}
	pool := c.ResolveBinding(p, time.Now()).Pool
	e.writeSlot <- struct{}{}
	defer func() { <-e.writeSlot }()
	before, set := e.snapshotBeforeRecord()
	err := c.statuses.updateStatusLocked(ctx, e, func(s *v1alpha1.BackendPoolStatus) {
		if !intent.OnlyStates {
			s.PoolID = pool.String()
		}
		s.WrittenAddresses, s.WrittenInstances = FormatAddresses(intent.Written), FormatInstances(intent.Instances)
		SetDown(s, intent.Down, set, metav1.NewTime(time.Now()).Rfc3339Copy())
		clearParked(s, p.Generation)
		setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonUpdating, updatingMessage(intent))
	})
	if err = e.finishRecord(before, err); err != nil {
		return fmt.Errorf("recording what is about to be written: %w", err)
	}
	return nil
}

func (e *Entry) snapshotBeforeRecord() (v1alpha1.BackendPoolStatus, membership.Set) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return *e.status.DeepCopy(), *cmp.Or(e.set, &membership.Set{})
}

// finishRecord restores the previous status and schedules a write if recording failed, or another process
// recorded something that no attempt has read.
func (e *Entry) finishRecord(before v1alpha1.BackendPoolStatus, err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil && e.otherRecord == nil {
		return nil
	}
	if err == nil {
		err = errRecordConflict
	}
	e.changeStatus(func(s *v1alpha1.BackendPoolStatus) { *s = before })
	e.revision++
	return err
}
