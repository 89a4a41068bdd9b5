;;; emacs.el --- Two turns with acp.el, told as JSON  -*- lexical-binding: t; -*-

;;; Commentary:

;; Run by Emacs in batch mode with acp.el on the load path.  ACP_AGENT is the agent's command line, as a JSON list; PROMPT and
;; CANCELLED are what is said: the first turn ends by itself, the second is cancelled once it has begun to answer.

;;; Code:

(require 'acp)
(require 'cl-lib)
(require 'json)
(require 'let-alist)

(defvar said "" "What the agent said so far.")
(defvar calls nil "The title and the status in each update of a tool call, newest first.")
(defvar stops nil "How the prompts ended, newest first.")
(defvar failure nil "What went wrong.")

(defvar client
  (let ((agent (json-parse-string (getenv "ACP_AGENT") :array-type 'list)))
    (acp-make-client :command (car agent) :command-params (cdr agent))))

(acp-subscribe-to-notifications
 :client client
 :on-notification
 (lambda (notification)
   (let-alist notification
     (pcase .params.update.sessionUpdate
       ("agent_message_chunk" (setq said (concat said .params.update.content.text)))
       ((or "tool_call" "tool_call_update")
        (push (list .params.update.title .params.update.status) calls))))))

(acp-subscribe-to-requests
 :client client
 :on-request
 (lambda (request)
   (let-alist request
     (when (equal .method "session/request_permission")
       (let ((allow (cl-find "allow_once" .params.options
                             :test #'equal :key (lambda (option) (map-elt option 'kind)))))
         (acp-send-response
          :client client
          :response (acp-make-session-request-permission-response
                     :request-id .id :option-id (map-elt allow 'optionId))))))))

(defun until (holds)
  "Wait until the function HOLDS says so, or something went wrong."
  (let ((ends (+ (float-time) 60)))
    (while (not (or failure (funcall holds)))
      (when (> (float-time) ends)
        (setq failure "nothing more came"))
      (accept-process-output nil 0.02))))

(defun ask (request)
  "Send REQUEST and wait for its answer."
  (let (answer)
    (acp-send-request :client client :request request
                      :on-success (lambda (response) (setq answer (or response t)))
                      :on-failure (lambda (why &rest _) (setq failure (format "%S" why))))
    (until (lambda () answer))
    answer))

(ask (acp-make-initialize-request :protocol-version 1))
(let ((session (map-elt (ask (acp-make-session-new-request :cwd default-directory)) 'sessionId)))
  (cl-flet ((prompt (text)
              (acp-send-request
               :client client
               :request (acp-make-session-prompt-request
                         :session-id session :prompt `(((type . "text") (text . ,text))))
               :on-success (lambda (response) (push (map-elt response 'stopReason) stops))
               :on-failure (lambda (why &rest _) (setq failure (format "%S" why))))))
    (prompt (getenv "PROMPT"))
    (until (lambda () stops))
    (setq said (concat said "\n"))
    (prompt (getenv "CANCELLED"))
    (let ((length (length said)))
      (until (lambda () (> (length said) length))))
    (acp-send-notification :client client
                           :notification (acp-make-session-cancel-notification :session-id session))
    (until (lambda () (cdr stops)))))

(acp-shutdown :client client)
(princ (json-encode `((said . ,said)
                      (calls . ,(vconcat (reverse calls)))
                      (stops . ,(vconcat (reverse stops)))
                      (failure . ,failure))))

;;; emacs.el ends here
