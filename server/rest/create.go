package rest

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/even-keel/evenkeel/server/patch"
	"github.com/even-keel/evenkeel/server/watch"
	"github.com/even-keel/evenkeel/storage"
)

// generateTries is how often a generated name may be taken already.
const generateTries = 8

// intent is what all writes have in common.
type intent struct {
	dryRun          bool
	manager         string
	fieldValidation string
	// applied says that who owns which field has been recorded already.
	applied bool
}

func (c *call) intent(dryRun []string, manager, fieldValidation string) intent {
	return intent{
		dryRun:          len(dryRun) > 0,
		manager:         patch.ManagerName(manager, c.r.UserAgent()),
		fieldValidation: fieldValidation,
	}
}

// create stores a new object.
func (c *call) create() error {
	o, err := c.createOptions()
	if err != nil {
		return err
	}
	in := c.intent(o.DryRun, o.FieldManager, o.FieldValidation)
	obj, err := c.readObject(in)
	if err != nil {
		return err
	}
	m := accessor(obj)
	if err := c.checkNamespace(m); err != nil {
		return err
	}
	return c.createObject(obj, in)
}

// readObject decodes the request's body into the stored version.
func (c *call) readObject(in intent) (runtime.Object, error) {
	media := contentType(c.r)
	if _, ok := c.api.codec.decoder(media); !ok {
		return nil, errUnknownFormat()
	}
	body, err := readBody(c.r)
	if err != nil {
		return nil, err
	}
	obj, strict, err := c.decodeBody(media, body)
	if err != nil {
		return nil, err
	}
	if err := c.handleStrict(strict, in); err != nil {
		return nil, err
	}
	return c.res.toStored(obj)
}

// handleStrict refuses, reports or ignores what a strict decoder found.
func (c *call) handleStrict(found []error, in intent) error {
	if len(found) == 0 {
		return nil
	}
	switch in.fieldValidation {
	case metav1.FieldValidationStrict:
		gvk := c.res.gvk
		return decodeError(runtime.NewStrictDecodingError(found), &gvk, gvk.Kind, nil)
	case metav1.FieldValidationIgnore:
	default:
		c.warnStrict(found)
	}
	return nil
}

// warnStrict reports what a strict decoder found, a line each.
func (c *call) warnStrict(found []error) {
	for _, err := range found {
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		text = strings.TrimPrefix(text, "unmarshal errors:\n")
		for line := range strings.SplitSeq(text, "\n") {
			c.warn(strings.TrimSpace(line))
		}
	}
}

// createObject readies a new object and stores it, under another name if a
// generated one is taken.
func (c *call) createObject(obj runtime.Object, in intent) error {
	for try := 1; ; try++ {
		candidate := obj.DeepCopyObject()
		m := accessor(candidate)
		generated := m.GetName() == "" && m.GetGenerateName() != ""
		created, err := c.tryCreate(candidate, in)
		if apierrors.IsAlreadyExists(err) && generated && try < generateTries {
			continue
		}
		if err != nil {
			return err
		}
		if created == nil {
			return c.answerObject(http.StatusCreated, candidate)
		}
		return c.answer(http.StatusCreated, created)
	}
}

// tryCreate returns nil for a dry run.
func (c *call) tryCreate(obj runtime.Object, in intent) (*watch.Object, error) {
	release, err := c.prepareNew(obj, in)
	if err != nil {
		return nil, err
	}
	stored := false
	defer func() {
		if !stored {
			release()
		}
	}()
	m := accessor(obj)
	if rev, err := revision(m.GetResourceVersion()); err == nil && rev != 0 {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	c.target.name = m.GetName()
	if err := c.refuseTerminating(m.GetName()); err != nil {
		return nil, err
	}
	existing, err := c.api.newest(c.ctx(), c.res.objects, m.GetNamespace(), m.GetName())
	if err != nil {
		return nil, err
	}
	if existing != nil {
		return nil, c.alreadyExists(existing)
	}
	if in.dryRun {
		return nil, nil
	}
	created, err := c.api.commit(c.ctx(), c.res, obj, 0)
	if errors.Is(err, storage.ErrConflict) {
		return nil, c.alreadyExists(c.res.objects.Get(m.GetNamespace(), m.GetName()))
	}
	stored = err == nil
	return created, err
}

func (c *call) alreadyExists(o *watch.Object) error {
	err := apierrors.NewAlreadyExists(c.res.groupResource(), c.target.name)
	if o == nil {
		return err
	}
	if obj, decodeErr := c.res.decoded(o); decodeErr == nil && accessor(obj).GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// prepareNew fills in, admits and checks a new object. Call release if it is
// not stored after all.
func (c *call) prepareNew(obj runtime.Object, in intent) (release func(), err error) {
	m := accessor(obj)
	wipeSystemFields(m)
	c.dedupOwners(m, "")
	k := c.res.kind
	if k.Default != nil {
		k.Default(obj)
	}
	if !in.applied {
		if err := c.trackFields(nil, obj, in.manager, ""); err != nil {
			return nil, err
		}
	}
	if err := c.api.admitNew(c, m); err != nil {
		return nil, err
	}
	if m.GetName() == "" && m.GetGenerateName() != "" {
		m.SetName(generateName(m.GetGenerateName()))
	}
	c.fillSystemFields(m)
	if k.HasStatus && !k.StatusOnCreate {
		keepStatus(obj, nil)
	}
	if release, err = c.allocate(obj, nil, in.dryRun); err != nil {
		return nil, err
	}
	if k.SetRequester != nil {
		k.SetRequester(obj, c.requester())
	}
	if k.PrepareCreate != nil {
		k.PrepareCreate(obj)
	}
	if err := c.res.validateNew(obj); err != nil {
		release()
		return nil, err
	}
	if k.Warnings != nil {
		for _, w := range k.Warnings(obj, nil) {
			c.warn(w)
		}
	}
	return release, nil
}
