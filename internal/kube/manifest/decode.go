// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// Decode rejects unknown and duplicate fields.
func Decode(doc []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(doc, into)
	if err != nil {
		return err
	}
	return joined(strict)
}

// Refusal joins errors of an object; nil if there are none.
func Refusal(errs field.ErrorList) error {
	all := make([]error, len(errs))
	for i, w := range errs {
		all[i] = w
	}
	return joined(all)
}

const (
	// Values may be large, so an object's errors are limited in number and length.
	mostTold = 10
	longest  = 300
)

func joined(all []error) error {
	if len(all) == 0 {
		return nil
	}
	var texts []string
	for _, err := range all[:min(len(all), mostTold)] {
		text := []rune(err.Error())
		if len(text) > longest {
			text = append(text[:longest], '…')
		}
		texts = append(texts, string(text))
	}
	if len(all) > mostTold {
		texts = append(texts, "and more")
	}
	return errors.New(strings.Join(texts, "; "))
}
