;;; emacs.el --- Answers requests of a test  -*- lexical-binding: t; -*-

;;; Commentary:

;; Opens FILE with a diagnostic and a selection, and answers the requests in REQUESTS, a JSON list; the answers are a line of JSON.

;;; Code:

(load (expand-file-name "editor-server" (file-name-directory load-file-name)) nil t)

(find-file (getenv "FILE"))
(setq flymake-no-changes-timeout nil)
(goto-char (point-min))
(delete-region (point) (line-end-position))
(insert "changed")
(forward-line 1)

(defun test-backend (report &rest _)
  "REPORT that the second line is wrong."
  (funcall report (list (flymake-make-diagnostic (current-buffer) (+ (point) 2) (+ (point) 3) :error "it is wrong"))))
(setq-local flymake-diagnostic-functions (list #'test-backend))
(flymake-mode 1)
(flymake-start)
(transient-mark-mode 1)
(push-mark (point) t t)
(forward-line 2)
(backward-char)
(let ((requests (json-parse-string (getenv "REQUESTS") :object-type 'alist :array-type 'list)))
  (princ (editor-server--json
          `((entry . ,editor-server-entry) (answers . ,(vconcat (mapcar #'editor-server-answer requests))))))
  (princ "\n"))

;;; emacs.el ends here
