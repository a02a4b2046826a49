// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"fmt"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/wholewrite"
)

const keyUpdateBehavior = "whole-writes"

// UpdateBehavior stores how Azure handles updates of whole load balancers. It implements
// verdicts.Store.
type UpdateBehavior struct {
	Reader client.Reader
	// Writer must be the leader's fenced writer.
	Writer    client.Writer
	Namespace string
	// Version is Weir's version: results of other versions are dropped.
	Version string
	Log     *slog.Logger
}

// ReadRecords implements verdicts.Store. An unreadable record is treated as empty.
func (w UpdateBehavior) ReadRecords(ctx context.Context) (map[string]wholewrite.Record, error) {
	r, err := Read(ctx, w.Reader, w.Namespace)
	if err != nil {
		return nil, err
	}
	return w.parseBehavior(r), nil
}

func (w UpdateBehavior) parseBehavior(r Record) map[string]wholewrite.Record {
	if r.object == nil {
		return map[string]wholewrite.Record{}
	}
	all, err := wholewrite.ParseRecords(r.object.Data[keyUpdateBehavior])
	if err != nil {
		w.Log.Warn("what Azure does with writes of whole load balancers is found out again: delete the key if it is yours",
			"configMap", view.Key(w.Namespace, Name), "key", keyUpdateBehavior, "err", err)
		return map[string]wholewrite.Record{}
	}
	return all
}

// WriteRecord implements verdicts.Store.
func (w UpdateBehavior) WriteRecord(ctx context.Context, subscription string, seen wholewrite.Record) error {
	for range maxTries {
		r, err := Read(ctx, w.Reader, w.Namespace)
		if err != nil {
			return err
		}
		all := w.parseBehavior(r)
		all[wholewrite.SubscriptionKey(subscription)] = seen
		err = r.writeKeys(ctx, w.Writer, map[string]string{keyUpdateBehavior: wholewrite.FormatRecords(all, w.Version)})
		if err == nil || !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("ConfigMap %s: others change it faster than it can be written", view.Key(w.Namespace, Name))
}
