// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/migrate"
)

const keyAsked = "basic-to-standard-asked"

// Asked returns the user's requests for the migration.
func (r Record) Asked() migrate.Asked {
	if r.object == nil {
		return migrate.Asked{}
	}
	return migrate.ParseAsked(r.object.Data[keyAsked])
}

// Ask updates the user's requests, retrying on conflict. An error of ask writes nothing.
func Ask(ctx context.Context, api client.Client, namespace string, ask func(Record) (migrate.Asked, error)) error {
	for range tries {
		r, err := Read(ctx, api, namespace)
		if err != nil {
			return err
		}
		if r.object == nil {
			return fmt.Errorf("there is no ConfigMap %s: no Weir has run there; --namespace says where it does", view.Key(namespace, Name))
		}
		next, err := ask(r)
		if err != nil {
			return err
		}
		text := migrate.FormatAsked(next)
		if text == r.object.Data[keyAsked] {
			return nil
		}
		err = r.set(ctx, api, map[string]string{keyAsked: text})
		if err == nil || !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("ConfigMap %s: others change it faster than it can be written", view.Key(namespace, Name))
}
