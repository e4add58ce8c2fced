package kinds

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // zones are known whatever the host has

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxCronJobName leaves room for the time that is appended to name a job.
const maxCronJobName = 52

func cronJobKind() *Kind {
	return &Kind{
		GVK:      batchv1.SchemeGroupVersion.WithKind("CronJob"),
		Resource: "cronjobs", Singular: "cronjob",
		ShortNames: []string{"cj"}, Categories: []string{"all"},
		Namespaced: true,
		New:        newOf[batchv1.CronJob], NewList: newOf[batchv1.CronJobList],
		HasStatus: true, HasGeneration: true,
		Default:  each(defaultCronJob),
		Validate: check(validateCronJob),
		ValidateCreate: check(func(c *batchv1.CronJob) field.ErrorList {
			p := &problems{}
			p.scheduleZone(c)
			p.timeZone(field.NewPath("spec", "timeZone"), c.Spec.TimeZone)
			if len(c.Name) > maxCronJobName {
				p.invalid(field.NewPath("metadata", "name"), c.Name, "must be no more than 52 characters")
			}
			return p.list
		}),
		ValidateUpdate: checkPair(validateCronJobUpdate),
		Warnings:       warn(cronJobWarnings),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(),
			column("Schedule", "When jobs are made, in cron's notation."), column("Timezone", "Time zone of the schedule."),
			booleanColumn("Suspend", "Whether no more jobs are made."), integerColumn("Active", "Jobs that run."),
			column("Last Schedule", "Time since a job was last made."),
			ageColumn(), containersColumn(), imagesColumn(), selectorColumn(),
		},
		Cells: cells(cronJobCells),
	}
}

func defaultCronJob(c *batchv1.CronJob) {
	s := &c.Spec
	setEmpty(&s.ConcurrencyPolicy, batchv1.AllowConcurrent)
	setDefault(&s.Suspend, false)
	setDefault(&s.SuccessfulJobsHistoryLimit, 3)
	setDefault(&s.FailedJobsHistoryLimit, 1)
	defaultJobTemplate(&s.JobTemplate.Spec)
}

func validateCronJob(c *batchv1.CronJob) field.ErrorList {
	p, s, path := &problems{}, &c.Spec, field.NewPath("spec")
	if s.Schedule == "" {
		p.required(path.Child("schedule"), "")
	} else if err := checkSchedule(s.Schedule); err != nil {
		p.invalid(path.Child("schedule"), s.Schedule, err.Error())
	}
	if s.StartingDeadlineSeconds != nil {
		p.nonNegative(path.Child("startingDeadlineSeconds"), *s.StartingDeadlineSeconds)
	}
	chosen(p, path.Child("concurrencyPolicy"), s.ConcurrencyPolicy, batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)
	p.jobTemplate(path.Child("jobTemplate", "spec"), &s.JobTemplate.Spec)
	p.nonNegativeIf(path.Child("successfulJobsHistoryLimit"), s.SuccessfulJobsHistoryLimit)
	p.nonNegativeIf(path.Child("failedJobsHistoryLimit"), s.FailedJobsHistoryLimit)
	return p.list
}

// jobTemplate checks a job to be, whose selector will be made.
func (p *problems) jobTemplate(path *field.Path, s *batchv1.JobSpec) {
	p.jobSpec(path, s)
	if s.Selector != nil {
		p.invalid(path.Child("selector"), s.Selector, "`selector` will be auto-generated")
	}
	if s.ManualSelector != nil && *s.ManualSelector {
		p.add(field.NotSupported(path.Child("manualSelector"), *s.ManualSelector, []string{"nil", "false"}))
	}
}

// scheduleZone refuses a time zone in the schedule.
func (p *problems) scheduleZone(c *batchv1.CronJob) {
	if strings.Contains(c.Spec.Schedule, "TZ") {
		p.invalid(field.NewPath("spec", "schedule"), c.Spec.Schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
	}
}

var zonePart = regexp.MustCompile(`^[A-Za-z._0-9+-]{1,14}$`)

func (p *problems) timeZone(path *field.Path, zone *string) {
	if zone == nil {
		return
	}
	if *zone == "" {
		p.invalid(path, *zone, "timeZone must be nil or non-empty string")
		return
	}
	for part := range strings.SplitSeq(*zone, "/") {
		if part == "." || part == ".." || strings.HasPrefix(part, "-") || !zonePart.MatchString(part) {
			p.invalid(path, *zone, "unknown time zone "+*zone)
			return
		}
	}
	if strings.EqualFold(*zone, "Local") {
		p.invalid(path, *zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
	}
	if _, err := time.LoadLocation(*zone); err != nil {
		p.invalid(path, *zone, err.Error())
	}
}

// validateCronJobUpdate allows a zone in the schedule of those that had one.
func validateCronJobUpdate(c, old *batchv1.CronJob) field.ErrorList {
	p := &problems{}
	switch hadZone := strings.Contains(old.Spec.Schedule, "TZ"); {
	case !hadZone:
		p.scheduleZone(c)
	case c.Spec.TimeZone != nil && strings.Contains(c.Spec.Schedule, "TZ"):
		p.invalid(field.NewPath("spec", "schedule"), c.Spec.Schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")
	}
	if !sameString(c.Spec.TimeZone, old.Spec.TimeZone) {
		p.timeZone(field.NewPath("spec", "timeZone"), c.Spec.TimeZone)
	}
	return p.list
}

func cronJobWarnings(c, old *batchv1.CronJob) []string {
	var out []string
	if old == nil || !equality.Semantic.DeepEqual(c.Spec, old.Spec) {
		out = jobSpecWarnings(field.NewPath("spec", "jobTemplate", "spec"), &c.Spec.JobTemplate.Spec)
	}
	if old == nil {
		return append(podNameWarning(c.Name), out...)
	}
	if strings.Contains(c.Spec.Schedule, "TZ") {
		out = append(out, fmt.Sprintf("cannot use TZ or CRON_TZ in %s, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details", field.NewPath("spec", "spec", "schedule")))
	}
	return out
}

func cronJobCells(c *batchv1.CronJob, now metav1.Time) []any {
	zone, last, suspended := "<none>", "<none>", "<unset>"
	if c.Spec.TimeZone != nil {
		zone = *c.Spec.TimeZone
	}
	if c.Status.LastScheduleTime != nil {
		last = Age(*c.Status.LastScheduleTime, now)
	}
	if c.Spec.Suspend != nil {
		suspended = map[bool]string{true: "True", false: "False"}[*c.Spec.Suspend]
	}
	s := &c.Spec.JobTemplate.Spec
	names, images := containerCells(s.Template.Spec.Containers)
	return []any{c.Name, c.Spec.Schedule, zone, suspended, int64(len(c.Status.Active)), last,
		Age(c.CreationTimestamp, now), names, images, metav1.FormatLabelSelector(s.Selector)}
}
