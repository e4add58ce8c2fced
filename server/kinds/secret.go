package kinds

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func secretKind() *Kind {
	return &Kind{
		GVK:      corev1.SchemeGroupVersion.WithKind("Secret"),
		Resource: "secrets", Singular: "secret", Namespaced: true,
		New: newOf[corev1.Secret], NewList: newOf[corev1.SecretList],
		Default:        each(defaultSecret),
		Validate:       check(validateSecret),
		ValidateUpdate: checkPair(validateSecretUpdate),
		Warnings:       warn(secretWarnings),
		Fields:         []string{"type"},
		FieldSet:       fieldSet(func(s *corev1.Secret) fields.Set { return fields.Set{"type": string(s.Type)} }),
		Columns: []metav1.TableColumnDefinition{nameColumn(), column("Type", "What the data is for."),
			column("Data", "How many keys there are."), ageColumn()},
		Cells: cells(func(s *corev1.Secret, now metav1.Time) []any {
			return []any{s.Name, string(s.Type), int64(len(s.Data)), Age(s.CreationTimestamp, now)}
		}),
	}
}

// defaultSecret takes what is written as text over into the data.
func defaultSecret(s *corev1.Secret) {
	setEmpty(&s.Type, corev1.SecretTypeOpaque)
	if len(s.StringData) > 0 && s.Data == nil {
		s.Data = map[string][]byte{}
	}
	for key, v := range s.StringData {
		s.Data[key] = []byte(v)
	}
	s.StringData = nil
}

func validateSecret(s *corev1.Secret) field.ErrorList {
	var p problems
	path, size := field.NewPath("data"), 0
	for key, v := range s.Data {
		p.invalid(path.Key(key), key, validation.IsConfigMapKey(key)...)
		size += len(v)
	}
	if size > corev1.MaxSecretSize {
		p.add(field.TooLong(path, "", corev1.MaxSecretSize))
	}
	p.checkSecretType(s, path)
	return p.list
}

// checkSecretType checks the keys that a type asks for.
func (p *problems) checkSecretType(s *corev1.Secret, path *field.Path) {
	has := func(key string) bool { _, ok := s.Data[key]; return ok }
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		p.nonEmpty(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), s.Annotations[corev1.ServiceAccountNameKey])
	case corev1.SecretTypeDockercfg:
		p.checkJSONKey(s, corev1.DockerConfigKey, path)
	case corev1.SecretTypeDockerConfigJson:
		p.checkJSONKey(s, corev1.DockerConfigJsonKey, path)
	case corev1.SecretTypeBasicAuth:
		if !has(corev1.BasicAuthUsernameKey) && !has(corev1.BasicAuthPasswordKey) {
			p.required(path.Key(corev1.BasicAuthUsernameKey), "")
			p.required(path.Key(corev1.BasicAuthPasswordKey), "")
		}
	case corev1.SecretTypeSSHAuth:
		p.nonEmpty(path.Key(corev1.SSHAuthPrivateKey), string(s.Data[corev1.SSHAuthPrivateKey]))
	case corev1.SecretTypeTLS:
		for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			if !has(key) {
				p.required(path.Key(key), "")
			}
		}
	}
}

func (p *problems) checkJSONKey(s *corev1.Secret, key string, path *field.Path) {
	v, has := s.Data[key]
	if !has {
		p.required(path.Key(key), "")
		return
	}
	if err := json.Unmarshal(v, &map[string]any{}); err != nil {
		p.invalid(path.Key(key), "<secret contents redacted>", err.Error())
	}
}

func validateSecretUpdate(s, old *corev1.Secret) field.ErrorList {
	var p problems
	p.add(apivalidation.ValidateImmutableField(s.Type, old.Type, field.NewPath("type"))...)
	if !isTrue(old.Immutable) {
		return p.list
	}
	if !isTrue(s.Immutable) {
		p.forbidden(field.NewPath("immutable"), frozen)
	}
	if !maps.EqualFunc(s.Data, old.Data, bytes.Equal) {
		p.forbidden(field.NewPath("data"), frozen)
	}
	return p.list
}

// secretWarnings warns of a certificate whose key is another's.
func secretWarnings(s, _ *corev1.Secret) []string {
	if s.Type != corev1.SecretTypeTLS {
		return nil
	}
	if _, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey]); err != nil {
		return []string{err.Error()}
	}
	return nil
}
