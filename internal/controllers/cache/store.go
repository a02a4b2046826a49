// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"reflect"
)

// InMemory sets empty stores without informers.
func (s *Snapshot) InMemory() {
	for _, k := range s.Kinds() {
		*k.Store = toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, k.Indexers)
	}
}

// StoreOf returns the store of a type; nil if none.
func (s *Snapshot) StoreOf(like client.Object) toolscache.Indexer {
	for _, k := range s.Kinds() {
		if reflect.TypeOf(k.Object) == reflect.TypeOf(like) {
			return *k.Store
		}
	}
	return nil
}

// Add adds objects to their stores.
func (s *Snapshot) Add(objects ...client.Object) error {
	for _, obj := range objects {
		store := s.StoreOf(obj)
		if store == nil {
			return fmt.Errorf("%s: no store holds a %T", client.ObjectKeyFromObject(obj), obj)
		}
		if err := store.Add(obj); err != nil {
			return err
		}
	}
	return nil
}
