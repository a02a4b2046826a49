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

const keyWholeWrites = "whole-writes"

// WholeWrites stores how Azure handles updates of whole load balancers. It implements
// verdicts.Store.
type WholeWrites struct {
	Reader client.Reader
	// Writer must be the leader's fenced writer.
	Writer    client.Writer
	Namespace string
	// Version is Weir's version: results of other versions are dropped.
	Version string
	Log     *slog.Logger
}

// Read implements verdicts.Store. An unreadable record is treated as empty.
func (w WholeWrites) Read(ctx context.Context) (map[string]wholewrite.Record, error) {
	r, err := Read(ctx, w.Reader, w.Namespace)
	if err != nil {
		return nil, err
	}
	return w.parse(r), nil
}

func (w WholeWrites) parse(r Record) map[string]wholewrite.Record {
	if r.object == nil {
		return map[string]wholewrite.Record{}
	}
	all, err := wholewrite.Parse(r.object.Data[keyWholeWrites])
	if err != nil {
		w.Log.Warn("what Azure does with writes of whole load balancers is found out again: delete the key if it is yours",
			"configMap", view.Key(w.Namespace, Name), "key", keyWholeWrites, "err", err)
		return map[string]wholewrite.Record{}
	}
	return all
}

// Keep implements verdicts.Store.
func (w WholeWrites) Keep(ctx context.Context, subscription string, seen wholewrite.Record) error {
	for range tries {
		r, err := Read(ctx, w.Reader, w.Namespace)
		if err != nil {
			return err
		}
		all := w.parse(r)
		all[wholewrite.Key(subscription)] = seen
		err = r.set(ctx, w.Writer, map[string]string{keyWholeWrites: wholewrite.Format(all, w.Version)})
		if err == nil || !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("ConfigMap %s: others change it faster than it can be written", view.Key(w.Namespace, Name))
}
